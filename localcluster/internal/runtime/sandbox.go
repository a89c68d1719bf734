package runtime

import (
	"context"
	"maps"
	"slices"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sandbox is a pod: the containers of one share nothing but its name, since all use the node's network.
type sandbox struct {
	id        string
	config    *cri.PodSandboxConfig
	createdAt int64
	state     cri.PodSandboxState // guarded by server.mu
}

func (s *server) RunPodSandbox(_ context.Context, request *cri.RunPodSandboxRequest) (*cri.RunPodSandboxResponse, error) {
	pod := &sandbox{id: newID(), config: request.GetConfig(), createdAt: time.Now().UnixNano()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sandboxes[pod.id] = pod
	return &cri.RunPodSandboxResponse{PodSandboxId: pod.id}, nil
}

func (s *server) StopPodSandbox(_ context.Context, request *cri.StopPodSandboxRequest) (*cri.StopPodSandboxResponse, error) {
	s.stopSandbox(request.GetPodSandboxId())
	return &cri.StopPodSandboxResponse{}, nil
}

func (s *server) RemovePodSandbox(_ context.Context, request *cri.RemovePodSandboxRequest) (*cri.RemovePodSandboxResponse, error) {
	id := request.GetPodSandboxId()
	for _, c := range s.stopSandbox(id) {
		if err := s.removeContainer(c); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sandboxes, id)
	return &cri.RemovePodSandboxResponse{}, nil
}

// stopSandbox ends the containers of a sandbox, which may be gone already, and returns them.
func (s *server) stopSandbox(id string) []*container {
	s.mu.Lock()
	if pod, ok := s.sandboxes[id]; ok {
		pod.state = cri.PodSandboxState_SANDBOX_NOTREADY
	}
	s.mu.Unlock()
	members := slices.DeleteFunc(s.listContainers(), func(c *container) bool { return c.sandbox.id != id })
	for _, c := range members {
		c.kill()
	}
	return members
}

func (s *server) PodSandboxStatus(_ context.Context, request *cri.PodSandboxStatusRequest) (*cri.PodSandboxStatusResponse, error) {
	pod, err := find(s, s.sandboxes, "pod sandbox", request.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &cri.PodSandboxStatusResponse{Status: pod.status(s.config.Address)}, nil
}

func (s *server) ListPodSandbox(_ context.Context, request *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	response := &cri.ListPodSandboxResponse{}
	for _, pod := range s.sandboxes {
		if pod.matches(request.GetFilter()) {
			response.Items = append(response.Items, pod.item())
		}
	}
	return response, nil
}

func (s *server) listContainers() []*container {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.containers))
}

func (p *sandbox) matches(filter *cri.PodSandboxFilter) bool {
	return (filter.GetId() == "" || filter.GetId() == p.id) &&
		(filter.GetState() == nil || filter.GetState().GetState() == p.state) &&
		hasLabels(p.config.GetLabels(), filter.GetLabelSelector())
}

func (p *sandbox) item() *cri.PodSandbox {
	return &cri.PodSandbox{
		Id:          p.id,
		Metadata:    p.config.GetMetadata(),
		State:       p.state,
		CreatedAt:   p.createdAt,
		Labels:      p.config.GetLabels(),
		Annotations: p.config.GetAnnotations(),
	}
}

// status echoes the requested namespaces, because the kubelet recreates a pod when they differ.
func (p *sandbox) status(address string) *cri.PodSandboxStatus {
	namespaces := p.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	return &cri.PodSandboxStatus{
		Id:          p.id,
		Metadata:    p.config.GetMetadata(),
		State:       p.state,
		CreatedAt:   p.createdAt,
		Network:     &cri.PodSandboxNetworkStatus{Ip: address},
		Linux:       &cri.LinuxPodSandboxStatus{Namespaces: &cri.Namespace{Options: namespaces}},
		Labels:      p.config.GetLabels(),
		Annotations: p.config.GetAnnotations(),
	}
}
