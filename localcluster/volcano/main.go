// Command volcano-scheduler is Volcano's own scheduler, unchanged: for the tests of the backend Volcano.
//
// Volcano publishes images, and its Go module; this builds the module's scheduler, as its own
// cmd/scheduler/main.go does.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	componentbaseoptions "k8s.io/component-base/config/options"
	"k8s.io/klog/v2"

	"volcano.sh/volcano/cmd/scheduler/app"
	"volcano.sh/volcano/cmd/scheduler/app/options"
	_ "volcano.sh/volcano/pkg/scheduler/actions" // what the configuration names
	_ "volcano.sh/volcano/pkg/scheduler/plugins" // what the configuration names
	commonutil "volcano.sh/volcano/pkg/util"
)

func main() {
	klog.InitFlags(nil)
	server := options.NewServerOption()
	server.AddFlags(pflag.CommandLine)
	utilfeature.DefaultMutableFeatureGate.AddFlag(pflag.CommandLine)
	commonutil.LeaderElectionDefault(&server.LeaderElection)
	server.LeaderElection.ResourceName = commonutil.GenerateComponentName(server.SchedulerNames)
	componentbaseoptions.BindLeaderElectionFlags(&server.LeaderElection, pflag.CommandLine)
	server.RegisterOptions()
	cliflag.InitFlags()
	if err := run(server); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(server *options.ServerOption) error {
	defer klog.Flush()
	if err := server.CheckOptionOrDie(); err != nil {
		return err
	}
	return app.Run(server)
}
