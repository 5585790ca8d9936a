// Command controlplane is a whole Kubernetes control plane in one binary, one sub-command for each component.
//
// One process runs one component: the components register metrics, feature gates and signal handlers globally.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
	_ "time/tzdata"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var components = map[string]func(arguments []string) int{
	"etcd":                    runEtcd,
	"kube-apiserver":          server(apiserver.NewAPIServerCommand),
	"kube-controller-manager": server(controllers.NewControllerManagerCommand),
	"kube-scheduler":          server(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubectl":                 runKubectl,
}

func main() {
	if len(os.Args) > 1 {
		if run, known := components[os.Args[1]]; known {
			// Components name themselves by os.Args[0]: as user agent, as field manager, kubectl to find its plugins.
			os.Args = os.Args[1:]
			os.Exit(run(os.Args[1:]))
		}
	}
	fmt.Fprintf(os.Stderr, "usage: controlplane COMPONENT [ARGUMENT ...], one of: %s\n", strings.Join(names(), ", "))
	os.Exit(2)
}

func names() []string {
	known := make([]string, 0, len(components))
	for name := range components {
		known = append(known, name)
	}
	sort.Strings(known)
	return known
}

func server(build func() *cobra.Command) func([]string) int {
	return func(arguments []string) int {
		command := build()
		command.SetArgs(arguments)
		return cli.Run(command)
	}
}

func runKubectl([]string) int {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
	return 0
}
