package runtime

import (
	"context"
	"slices"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Containers have no control group of their own, so that their use of resources is reported as zero: with no
// answer at all the kubelet would ask cAdvisor, which does not know them, and log an error every time.

func (s *server) ContainerStats(
	_ context.Context, request *cri.ContainerStatsRequest,
) (*cri.ContainerStatsResponse, error) {
	c, err := s.container(request.GetContainerId())
	if err != nil {
		return nil, err
	}
	return &cri.ContainerStatsResponse{Stats: containerStats(c.item())}, nil
}

func (s *server) ListContainerStats(
	_ context.Context, request *cri.ListContainerStatsRequest,
) (*cri.ListContainerStatsResponse, error) {
	filter := request.GetFilter()
	return &cri.ListContainerStatsResponse{Stats: s.runningStats(&cri.ContainerFilter{
		Id:            filter.GetId(),
		PodSandboxId:  filter.GetPodSandboxId(),
		LabelSelector: filter.GetLabelSelector(),
	})}, nil
}

func (s *server) PodSandboxStats(
	_ context.Context, request *cri.PodSandboxStatsRequest,
) (*cri.PodSandboxStatsResponse, error) {
	pod, err := find(s, s.sandboxes, "pod sandbox", request.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	return &cri.PodSandboxStatsResponse{Stats: s.sandboxStats(pod)}, nil
}

func (s *server) ListPodSandboxStats(
	_ context.Context, request *cri.ListPodSandboxStatsRequest,
) (*cri.ListPodSandboxStatsResponse, error) {
	filter := request.GetFilter()
	wanted := &cri.PodSandboxFilter{Id: filter.GetId(), LabelSelector: filter.GetLabelSelector()}
	response := &cri.ListPodSandboxStatsResponse{}
	for _, pod := range s.listSandboxes(wanted) {
		response.Stats = append(response.Stats, s.sandboxStats(pod))
	}
	return response, nil
}

func (s *server) ListPodSandboxMetrics(
	context.Context, *cri.ListPodSandboxMetricsRequest,
) (*cri.ListPodSandboxMetricsResponse, error) {
	return &cri.ListPodSandboxMetricsResponse{}, nil
}

func (s *server) sandboxStats(pod *sandbox) *cri.PodSandboxStats {
	now := time.Now().UnixNano()
	return &cri.PodSandboxStats{
		Attributes: &cri.PodSandboxAttributes{
			Id:          pod.id,
			Metadata:    pod.config.GetMetadata(),
			Labels:      pod.config.GetLabels(),
			Annotations: pod.config.GetAnnotations(),
		},
		Linux: &cri.LinuxPodSandboxStats{
			Cpu:        noCPU(now),
			Memory:     noMemory(now),
			Containers: s.runningStats(&cri.ContainerFilter{PodSandboxId: pod.id}),
		},
	}
}

func (s *server) runningStats(filter *cri.ContainerFilter) (stats []*cri.ContainerStats) {
	filter.State = &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING}
	for _, c := range s.listContainers() {
		if item := c.item(); matches(item, filter) {
			stats = append(stats, containerStats(item))
		}
	}
	return slices.Clip(stats)
}

func containerStats(item *cri.Container) *cri.ContainerStats {
	now := time.Now().UnixNano()
	return &cri.ContainerStats{
		Attributes: &cri.ContainerAttributes{
			Id:          item.Id,
			Metadata:    item.Metadata,
			Labels:      item.Labels,
			Annotations: item.Annotations,
		},
		Cpu:    noCPU(now),
		Memory: noMemory(now),
	}
}

func noCPU(timestamp int64) *cri.CpuUsage {
	return &cri.CpuUsage{
		Timestamp:            timestamp,
		UsageCoreNanoSeconds: &cri.UInt64Value{},
		UsageNanoCores:       &cri.UInt64Value{},
	}
}

func noMemory(timestamp int64) *cri.MemoryUsage {
	return &cri.MemoryUsage{Timestamp: timestamp, WorkingSetBytes: &cri.UInt64Value{}}
}
