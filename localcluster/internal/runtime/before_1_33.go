//go:build before1.33

package runtime

import (
	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// stopSignal is SIGTERM: pods name no other one.
func stopSignal(*cri.ContainerConfig) unix.Signal { return unix.SIGTERM }

func tellStopSignal(*cri.ContainerStatus, *cri.ContainerConfig) {}
