// Command kubectl is Kubernetes' own, of the cluster's minor.
//
// It is a program apart: without the control plane inside it starts in half the time, and tests start it thousands
// of times.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() { os.Exit(cli.Run(cmd.NewDefaultKubectlCommand())) }
