package podapi

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gpushare.io/scheduler/internal/cards"
)

var ours = []cards.Resource{{Name: "gpushare.io/memory", Class: cards.Memory}}

func list(amounts ...string) v1.ResourceList {
	list := v1.ResourceList{}
	for place := 0; place < len(amounts); place += 2 {
		list[v1.ResourceName(amounts[place])] = resource.MustParse(amounts[place+1])
	}
	return list
}

func container(name string, limits v1.ResourceList) v1.Container {
	return v1.Container{Name: name, Resources: v1.ResourceRequirements{Limits: limits}}
}

func TestRequestAddsUpWhatRunsTogether(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	sidecar := container("sidecar", list("gpushare.io/memory", "1", "cpu", "250m"))
	sidecar.RestartPolicy = &always
	pod := &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{container("init", list("gpushare.io/memory", "3")), sidecar},
		Containers:     []v1.Container{container("main", list("gpushare.io/memory", "4", "cpu", "1", "memory", "1Gi"))},
	}}
	request := Request(pod, ours)
	if len(request.Parts) != 1 || request.Parts[0].Total != 5 {
		t.Fatalf("parts: %+v", request.Parts)
	}
	if request.CPU != "1250m" || request.Memory != "1Gi" {
		t.Errorf("CPU %s, memory %s", request.CPU, request.Memory)
	}
	if len(request.Lending) != 1 || request.Lending[0] != "init" {
		t.Errorf("lending: %v", request.Lending)
	}
}

func TestAsksForAny(t *testing.T) {
	for _, one := range []struct {
		name string
		spec v1.PodSpec
		want bool
	}{
		{"nothing", v1.PodSpec{Containers: []v1.Container{container("a", nil)}}, false},
		{"CPU", v1.PodSpec{Containers: []v1.Container{container("a", list("cpu", "1"))}}, false},
		{"0 units", v1.PodSpec{Containers: []v1.Container{container("a", list("gpushare.io/memory", "0"))}}, true},
		{"an init container", v1.PodSpec{InitContainers: []v1.Container{container("a", list("gpushare.io/memory", "1"))}}, true},
		{"another's", v1.PodSpec{Containers: []v1.Container{container("a", list("nvidia.com/gpu", "1"))}}, false},
	} {
		if asks := AsksForAny(&v1.Pod{Spec: one.spec}, ours); asks != one.want {
			t.Errorf("%s: %v", one.name, asks)
		}
	}
}

func TestWhoComesBack(t *testing.T) {
	yes := true
	owned := func(kind string) *v1.Pod {
		owner := metav1.OwnerReference{Kind: kind, Controller: &yes}
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner}}}
	}
	mirror := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.MirrorPodAnnotationKey: "x"}}}
	if !ComesBack(owned("DaemonSet")) || !ComesBack(mirror) {
		t.Error("a DaemonSet's pod or a mirror pod does not come back")
	}
	if ComesBack(owned("ReplicaSet")) || ComesBack(&v1.Pod{}) {
		t.Error("another pod comes back")
	}
}
