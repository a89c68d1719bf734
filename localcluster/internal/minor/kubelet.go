//go:build !before1.34

package minor

import (
	"context"

	"github.com/spf13/cobra"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// KubeletCommand is the kubelet's own.
func KubeletCommand() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }
