package runtime

import (
	"context"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func (s *server) CreateContainer(_ context.Context, request *cri.CreateContainerRequest) (*cri.CreateContainerResponse, error) {
	pod, err := find(s, s.sandboxes, "pod sandbox", request.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	c := newContainer(s.config, pod, request.GetConfig())
	c.mu.Lock()
	c.writeRecord()
	c.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.containers[c.id] = c
	return &cri.CreateContainerResponse{ContainerId: c.id}, nil
}

func (s *server) container(id string) (*container, error) {
	return find(s, s.containers, "container", id)
}

func (s *server) StartContainer(_ context.Context, request *cri.StartContainerRequest) (*cri.StartContainerResponse, error) {
	c, err := s.container(request.GetContainerId())
	if err != nil {
		return nil, err
	}
	return &cri.StartContainerResponse{}, c.start()
}

func (s *server) StopContainer(ctx context.Context, request *cri.StopContainerRequest) (*cri.StopContainerResponse, error) {
	c, err := s.container(request.GetContainerId())
	if err != nil {
		return &cri.StopContainerResponse{}, nil // removed already
	}
	return &cri.StopContainerResponse{}, c.stop(ctx, time.Duration(request.GetTimeout())*time.Second)
}

// stop asks the program to end and kills the container after the grace period.
func (c *container) stop(ctx context.Context, grace time.Duration) error {
	if grace > 0 {
		c.signal(stopSignal(c.config))
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-c.exited:
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.kill()
	return nil
}

func (s *server) RemoveContainer(_ context.Context, request *cri.RemoveContainerRequest) (*cri.RemoveContainerResponse, error) {
	c, err := s.container(request.GetContainerId())
	if err != nil {
		return &cri.RemoveContainerResponse{}, nil // removed already
	}
	return &cri.RemoveContainerResponse{}, s.removeContainer(c)
}

func (s *server) removeContainer(c *container) error {
	if err := c.remove(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.containers, c.id)
	return nil
}

func (s *server) ListContainers(_ context.Context, request *cri.ListContainersRequest) (*cri.ListContainersResponse, error) {
	return &cri.ListContainersResponse{Containers: s.containerItems(request.GetFilter())}, nil
}

func (s *server) containerItems(filter *cri.ContainerFilter) (items []*cri.Container) {
	for _, c := range s.listContainers() {
		if item := c.item(); matches(item, filter) {
			items = append(items, item)
		}
	}
	return items
}

func matches(item *cri.Container, filter *cri.ContainerFilter) bool {
	return (filter.GetId() == "" || filter.GetId() == item.Id) &&
		(filter.GetPodSandboxId() == "" || filter.GetPodSandboxId() == item.PodSandboxId) &&
		(filter.GetState() == nil || filter.GetState().GetState() == item.State) &&
		hasLabels(item.Labels, filter.GetLabelSelector())
}

func (c *container) item() *cri.Container {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &cri.Container{
		Id:           c.id,
		PodSandboxId: c.sandbox.id,
		Metadata:     c.config.GetMetadata(),
		Image:        c.config.GetImage(),
		ImageRef:     c.config.GetImage().GetImage(),
		ImageId:      c.config.GetImage().GetImage(),
		State:        c.state,
		CreatedAt:    c.createdAt,
		Labels:       c.config.GetLabels(),
		Annotations:  c.config.GetAnnotations(),
	}
}

func (s *server) ContainerStatus(_ context.Context, request *cri.ContainerStatusRequest) (*cri.ContainerStatusResponse, error) {
	c, err := s.container(request.GetContainerId())
	if err != nil {
		return nil, err
	}
	return &cri.ContainerStatusResponse{Status: c.status()}, nil
}

func (c *container) status() *cri.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	status := &cri.ContainerStatus{
		Id:          c.id,
		Metadata:    c.config.GetMetadata(),
		State:       c.state,
		CreatedAt:   c.createdAt,
		StartedAt:   c.startedAt,
		FinishedAt:  c.finishedAt,
		ExitCode:    c.exitCode,
		Image:       c.config.GetImage(),
		ImageRef:    c.config.GetImage().GetImage(),
		ImageId:     c.config.GetImage().GetImage(),
		Reason:      c.reason,
		Message:     c.message,
		Labels:      c.config.GetLabels(),
		Annotations: c.config.GetAnnotations(),
		Mounts:      c.config.GetMounts(),
		LogPath:     c.logPath(),
		Resources:   &cri.ContainerResources{Linux: c.config.GetLinux().GetResources()},
		User:        c.user(),
	}
	tellStopSignal(status, c.config)
	return status
}

func (c *container) user() *cri.ContainerUser {
	credential := c.process.credential
	return &cri.ContainerUser{Linux: &cri.LinuxContainerUser{
		Uid:                int64(credential.Uid),
		Gid:                int64(credential.Gid),
		SupplementalGroups: c.config.GetLinux().GetSecurityContext().GetSupplementalGroups(),
	}}
}

func (s *server) ReopenContainerLog(
	_ context.Context, request *cri.ReopenContainerLogRequest,
) (*cri.ReopenContainerLogResponse, error) {
	c, err := s.container(request.GetContainerId())
	if err != nil {
		return nil, err
	}
	return &cri.ReopenContainerLogResponse{}, c.reopenLog()
}

func (s *server) UpdateContainerResources(
	context.Context, *cri.UpdateContainerResourcesRequest,
) (*cri.UpdateContainerResourcesResponse, error) {
	return &cri.UpdateContainerResourcesResponse{}, nil
}
