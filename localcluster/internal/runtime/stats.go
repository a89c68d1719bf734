package runtime

import (
	"context"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ListContainerStats reports that nothing is used, as containers have no control groups of their own. Without
// an answer the kubelet would ask cAdvisor, which does not know the containers, and log an error every time.
func (s *server) ListContainerStats(
	_ context.Context, request *cri.ListContainerStatsRequest,
) (*cri.ListContainerStatsResponse, error) {
	filter := &cri.ContainerFilter{
		Id:            request.GetFilter().GetId(),
		PodSandboxId:  request.GetFilter().GetPodSandboxId(),
		LabelSelector: request.GetFilter().GetLabelSelector(),
		State:         &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING},
	}
	response := &cri.ListContainerStatsResponse{}
	for _, item := range s.containerItems(filter) {
		response.Stats = append(response.Stats, containerStats(item, time.Now()))
	}
	return response, nil
}

func containerStats(item *cri.Container, now time.Time) *cri.ContainerStats {
	return &cri.ContainerStats{
		Attributes: &cri.ContainerAttributes{
			Id:          item.Id,
			Metadata:    item.Metadata,
			Labels:      item.Labels,
			Annotations: item.Annotations,
		},
		Cpu: &cri.CpuUsage{
			Timestamp:            now.UnixNano(),
			UsageCoreNanoSeconds: &cri.UInt64Value{},
			UsageNanoCores:       &cri.UInt64Value{},
		},
		Memory: &cri.MemoryUsage{Timestamp: now.UnixNano(), WorkingSetBytes: &cri.UInt64Value{}},
	}
}
