//go:build !before1.33

package runtime

import (
	"strings"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// stopSignal is the one that a pod names, or else SIGTERM. Since 1.37 names begin with SIGNAL_.
func stopSignal(config *cri.ContainerConfig) unix.Signal {
	name := strings.TrimPrefix(config.GetStopSignal().String(), "SIGNAL_")
	if signal := unix.SignalNum(name); signal != 0 {
		return signal
	}
	return unix.SIGTERM
}

func tellStopSignal(status *cri.ContainerStatus, config *cri.ContainerConfig) {
	status.StopSignal = config.GetStopSignal()
}
