package runtime

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func (p *pod) sandboxStatus() (*cri.PodSandboxStatus, error) {
	response, err := p.PodSandboxStatus(p.ctx(), &cri.PodSandboxStatusRequest{PodSandboxId: p.id})
	return response.GetStatus(), err
}

func TestSandboxReportsWhatItWasGiven(t *testing.T) {
	node := startNode(t)
	options := &cri.NamespaceOption{Network: cri.NamespaceMode_NODE, Pid: cri.NamespaceMode_CONTAINER}
	config := &cri.PodSandboxConfig{
		Metadata:    &cri.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: "1", Attempt: 2},
		Annotations: map[string]string{"note": "x"},
		Linux: &cri.LinuxPodSandboxConfig{
			SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: options},
		},
	}
	response, err := node.RunPodSandbox(node.ctx(), &cri.RunPodSandboxRequest{Config: config})
	must(t, err)
	state, err := (&pod{node: node, id: response.GetPodSandboxId()}).sandboxStatus()
	must(t, err)
	equal(t, "state", state.GetState(), cri.PodSandboxState_SANDBOX_READY)
	equal(t, "address", state.GetNetwork().GetIp(), "10.1.2.3")
	equal(t, "annotation", state.GetAnnotations()["note"], "x")
	if !proto.Equal(state.GetMetadata(), config.GetMetadata()) {
		t.Errorf("metadata: got %v, want %v", state.GetMetadata(), config.GetMetadata())
	}
	if got := state.GetLinux().GetNamespaces().GetOptions(); !proto.Equal(got, options) {
		t.Errorf("namespaces: got %v, want %v", got, options)
	}
}

func TestStoppedSandboxIsNotReadyAndEndsItsContainers(t *testing.T) {
	node := startNode(t)
	web, db := node.pod("web"), node.pod("db")
	stopped, other := web.start(script("sleep infinity")), db.start(script("sleep infinity"))
	created := web.create(script("true"))
	for range 2 {
		_, err := node.StopPodSandbox(node.ctx(), &cri.StopPodSandboxRequest{PodSandboxId: web.id})
		must(t, err)
	}
	state, err := web.sandboxStatus()
	must(t, err)
	equal(t, "sandbox", state.GetState(), cri.PodSandboxState_SANDBOX_NOTREADY)
	equal(t, "container", stopped.status().GetState(), cri.ContainerState_CONTAINER_EXITED)
	equal(t, "container of the other pod", other.status().GetState(), cri.ContainerState_CONTAINER_RUNNING)
	equal(t, "start of another container", status.Code(created.start()), codes.FailedPrecondition)
}

func TestRemovedSandboxIsGone(t *testing.T) {
	node := startNode(t)
	web := node.pod("web")
	running := web.start(script("sleep infinity"))
	for range 2 {
		_, err := node.RemovePodSandbox(node.ctx(), &cri.RemovePodSandboxRequest{PodSandboxId: web.id})
		must(t, err)
	}
	_, err := web.sandboxStatus()
	equal(t, "sandbox", status.Code(err), codes.NotFound)
	_, err = node.ContainerStatus(node.ctx(), &cri.ContainerStatusRequest{ContainerId: running.id})
	equal(t, "container", status.Code(err), codes.NotFound)
	_, err = node.CreateContainer(node.ctx(), &cri.CreateContainerRequest{PodSandboxId: web.id, Config: script("true")})
	equal(t, "new container", status.Code(err), codes.NotFound)
}

func TestListPodSandboxHonoursItsFilter(t *testing.T) {
	node := startNode(t)
	web, db := node.pod("web"), node.pod("db")
	_, err := node.StopPodSandbox(node.ctx(), &cri.StopPodSandboxRequest{PodSandboxId: db.id})
	must(t, err)
	cases := map[string]struct {
		filter *cri.PodSandboxFilter
		want   map[string]bool
	}{
		"none":     {nil, map[string]bool{web.id: true, db.id: true}},
		"by id":    {&cri.PodSandboxFilter{Id: db.id}, map[string]bool{db.id: true}},
		"by state": {&cri.PodSandboxFilter{State: &cri.PodSandboxStateValue{}}, map[string]bool{web.id: true}},
		"by label": {&cri.PodSandboxFilter{LabelSelector: map[string]string{"app": "db"}}, map[string]bool{db.id: true}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			response, err := node.ListPodSandbox(node.ctx(), &cri.ListPodSandboxRequest{Filter: test.filter})
			must(t, err)
			equal(t, "sandboxes", len(response.GetItems()), len(test.want))
			for _, item := range response.GetItems() {
				if !test.want[item.GetId()] {
					t.Errorf("unexpected sandbox %v", item)
				}
			}
		})
	}
}

func TestRuntimeIsReady(t *testing.T) {
	node := startNode(t)
	response, err := node.Status(node.ctx(), &cri.StatusRequest{})
	must(t, err)
	for _, condition := range response.GetStatus().GetConditions() {
		equal(t, condition.GetType(), condition.GetStatus(), true)
	}
	version, err := node.Version(node.ctx(), &cri.VersionRequest{})
	must(t, err)
	equal(t, "API version", version.GetRuntimeApiVersion(), "v1")
}

func TestEveryImageIsThere(t *testing.T) {
	node := startNode(t)
	image := &cri.ImageSpec{Image: "example.org/any:1"}
	pulled, err := node.images.PullImage(node.ctx(), &cri.PullImageRequest{Image: image})
	must(t, err)
	found, err := node.images.ImageStatus(node.ctx(), &cri.ImageStatusRequest{Image: image})
	must(t, err)
	equal(t, "image", found.GetImage().GetId(), pulled.GetImageRef())
	equal(t, "user", found.GetImage().GetUid().GetValue(), 0)
	usage, err := node.images.ImageFsInfo(node.ctx(), &cri.ImageFsInfoRequest{})
	must(t, err)
	equal(t, "filesystem", usage.GetImageFilesystems()[0].GetFsId().GetMountpoint(), node.config.StateDir)
}

func TestStatsNameTheRunningContainers(t *testing.T) {
	web := startNode(t).pod("web")
	running := web.start(script("sleep infinity"))
	web.run(script("true"))
	containers, err := web.ListContainerStats(web.ctx(), &cri.ListContainerStatsRequest{})
	must(t, err)
	equal(t, "containers", len(containers.GetStats()), 1)
	equal(t, "container", containers.GetStats()[0].GetAttributes().GetId(), running.id)
}
