// Command kube contains etcd and all programs of Kubernetes; the first argument selects one. They share most of their
// code, so one binary takes a fifth of the space and of the link time.
package main

import (
	"context"
	"fmt"
	"os"
	_ "time/tzdata"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func command(name string) *cobra.Command {
	switch name {
	case "kube-apiserver":
		return apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		return controllers.NewControllerManagerCommand()
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand()
	case "kube-proxy":
		return proxy.NewProxyCommand()
	case "kubelet":
		return kubelet.NewKubeletCommand(context.Background())
	}
	return nil
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "The first argument must name a program: etcd, kube-apiserver, kubelet, ...")
		os.Exit(2)
	}
	os.Args = os.Args[1:]
	if os.Args[0] == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	program := command(os.Args[0])
	if program == nil {
		fmt.Fprintf(os.Stderr, "Unknown program %s: use etcd, kube-apiserver, kubelet, ...\n", os.Args[0])
		os.Exit(2)
	}
	os.Exit(cli.Run(program))
}
