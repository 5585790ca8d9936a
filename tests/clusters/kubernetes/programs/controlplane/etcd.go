package main

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// runEtcd serves --data-dir on --client-url until SIGTERM. What it holds does not survive a power cut: it never syncs.
func runEtcd(arguments []string) int {
	flags := flag.NewFlagSet("etcd", flag.ExitOnError)
	directory := flags.String("data-dir", "", "where the data lies")
	client := flags.String("client-url", "", "where the API server finds it, as unix://localhost:1 (a file of that name)")
	peer := flags.String("peer-url", "", "where other members would find it")
	if err := flags.Parse(arguments); err != nil {
		return 2
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	if err := serveEtcd(*directory, *client, *peer, stop); err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		return 1
	}
	return 0
}

func serveEtcd(directory, client, peer string, stop <-chan os.Signal) error {
	config := embed.NewConfig()
	config.Dir = directory
	config.LogLevel = "error"
	config.UnsafeNoFsync = true
	// Left at zero it logs every request as slow.
	config.WarningUnaryRequestDuration = 300 * time.Millisecond
	if err := listenOn(config, client, peer); err != nil {
		return err
	}
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer etcd.Close()
	select {
	case <-etcd.Server.ReadyNotify():
		fmt.Println("etcd is ready")
	case <-stop:
		return nil
	}
	select {
	case <-stop:
		return nil
	case err := <-etcd.Err():
		return err
	}
}

func listenOn(config *embed.Config, client, peer string) error {
	clientURL, err := url.Parse(client)
	if err != nil {
		return err
	}
	peerURL, err := url.Parse(peer)
	if err != nil {
		return err
	}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*clientURL}, []url.URL{*clientURL}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peerURL}, []url.URL{*peerURL}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	return nil
}
