// Judges one Kubernetes object, JSON on standard input, as Flux does: by its own kstatus. Prints status and message, a line each.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	check(err)
	object := &unstructured.Unstructured{}
	check(object.UnmarshalJSON(text))
	found, err := status.Compute(object)
	check(err)
	fmt.Printf("%s\n%s\n", found.Status, found.Message)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
