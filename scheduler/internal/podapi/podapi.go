// Package podapi reads from pods of the Kubernetes API what placement needs of them.
package podapi

import (
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/ledger"
)

// Request returns what a pod asks of resources, in units.
func Request(pod *v1.Pod, resources []cards.Resource) cards.Request {
	names := make([]v1.ResourceName, 0, len(resources)+2)
	for _, resource := range resources {
		names = append(names, v1.ResourceName(resource.Name))
	}
	names = append(names, v1.ResourceCPU, v1.ResourceMemory)
	return cards.ReadRequest(cards.Pod{
		InitContainers: containers(pod.Spec.InitContainers, names),
		Containers:     containers(pod.Spec.Containers, names),
	}, resources)
}

func containers(written []v1.Container, names []v1.ResourceName) []cards.Container {
	read := make([]cards.Container, len(written))
	for place := range written {
		one := &written[place]
		read[place] = cards.Container{
			Name:     one.Name,
			Stays:    one.RestartPolicy != nil && *one.RestartPolicy == v1.ContainerRestartPolicyAlways,
			Limits:   amounts(one.Resources.Limits, names),
			Requests: amounts(one.Resources.Requests, names),
		}
	}
	return read
}

func amounts(written v1.ResourceList, names []v1.ResourceName) map[string]string {
	read := make(map[string]string, len(written))
	for _, name := range names {
		if amount, has := written[name]; has {
			read[string(name)] = amount.String()
		}
	}
	return read
}

// AsksForAny says whether a container of the pod has a limit for one of resources, be it 0. It is cheap: it is asked
// of every pod.
func AsksForAny(pod *v1.Pod, resources []cards.Resource) bool {
	return anyAsks(pod.Spec.Containers, resources) || anyAsks(pod.Spec.InitContainers, resources)
}

func anyAsks(containers []v1.Container, resources []cards.Resource) bool {
	for place := range containers {
		limits := containers[place].Resources.Limits
		if len(limits) == 0 {
			continue
		}
		for _, resource := range resources {
			if _, asks := limits[v1.ResourceName(resource.Name)]; asks {
				return true
			}
		}
	}
	return false
}

// Read returns what the annotations of a bound pod say of its units, and why something of that is not believed.
func Read(pod *v1.Pod, resources func() []cards.Resource) (*ledger.Pod, error) {
	read, doubts := ledger.ReadPod(string(pod.UID), pod.Spec.NodeName, pod.Annotations, func() cards.Request {
		return Request(pod, resources())
	})
	return read, errors.Join(doubts...)
}

// Priority returns 0 for a pod that has none.
func Priority(pod *v1.Pod) int32 {
	if pod.Spec.Priority != nil {
		return *pod.Spec.Priority
	}
	return 0
}

// Preempts says whether others may be evicted for the pod.
func Preempts(pod *v1.Pod) bool {
	return pod.Spec.PreemptionPolicy == nil || *pod.Spec.PreemptionPolicy != v1.PreemptNever
}

// Started returns when the pod began to run, or was made.
func Started(pod *v1.Pod) time.Time {
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return pod.CreationTimestamp.Time
}

// ComesBack says whether the pod would run on the same node again at once: a static pod, or a pod of a DaemonSet.
func ComesBack(pod *v1.Pod) bool {
	if _, is := pod.Annotations[v1.MirrorPodAnnotationKey]; is {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}
