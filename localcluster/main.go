// Command localcluster runs a real Kubernetes control plane and real kubelets on one Linux machine.
//
// It is every component in one program: the name it is called by, or else its first argument, says which.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // counts client requests in the components' /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // build information in the components' /metrics
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"gpushare.io/localcluster/internal/minor"
	"gpushare.io/localcluster/internal/node"
	"gpushare.io/localcluster/internal/quantity"
	"gpushare.io/localcluster/internal/supervisor"
)

var programs = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          component(apiserver.NewAPIServerCommand),
	"kube-controller-manager": component(controllermanager.NewControllerManagerCommand),
	"kube-scheduler":          component(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubelet":                 component(newKubeletCommand),
	"pause":                   pause,
	supervisor.OuterCommand:   failing(supervisor.RunOuter),
	supervisor.InnerCommand:   failing(supervisor.RunInner),
	node.InitCommand:          failing(node.RunInit),
	node.AgentCommand:         failing(node.RunAgent),
	quantity.Command:          failing(quantity.Run),
}

func main() {
	name := filepath.Base(os.Args[0])
	if programs[name] == nil && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	run, known := programs[name]
	if !known {
		fmt.Fprintf(os.Stderr, "no program %q in this binary; call it as kubelet, kube-scheduler, ...\n", name)
		os.Exit(2)
	}
	run()
}

func newKubeletCommand() *cobra.Command {
	os.Args = append(os.Args, minor.KubeletFlags...)
	return minor.KubeletCommand()
}

func component(command func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(command())) }
}

func failing(run func() error) func() {
	return func() {
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// pause keeps a pod's sandbox alive, like the image of that name.
func pause() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	<-ended
}
