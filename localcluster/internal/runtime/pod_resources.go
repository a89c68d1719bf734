//go:build !before1.33

package runtime

import (
	"context"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func (s *server) UpdatePodSandboxResources(
	context.Context, *cri.UpdatePodSandboxResourcesRequest,
) (*cri.UpdatePodSandboxResourcesResponse, error) {
	return &cri.UpdatePodSandboxResourcesResponse{}, nil
}
