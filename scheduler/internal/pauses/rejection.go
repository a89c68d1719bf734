package pauses

import (
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"gpushare.io/scheduler/internal/cards"
)

const (
	// unexpected is the reason of all failures with device plugins, and of much else.
	unexpected = "UnexpectedAdmissionError"
	// callFailed is in the message when a device plugin did not answer, or refused. Such a message names no resource.
	callFailed = "rpc error:"
)

// Rejection returns why the kubelet did not admit a pod, if that concerns one of the served resources of its node;
// else an empty text. ours are all extended resources that are ours.
func Rejection(pod *v1.Pod, served, ours []cards.Resource) string {
	if pod.Status.Phase != v1.PodFailed {
		return ""
	}
	reason, message := pod.Status.Reason, pod.Status.Message
	for _, resource := range served {
		isNamed := reason == unexpected && names(message, resource.Name)
		isCalled := reason == unexpected && strings.Contains(message, callFailed) && asksOnlyOurs(pod, resource, ours)
		if reason == "OutOf"+resource.Name || isNamed || isCalled {
			return reason
		}
	}
	return ""
}

// names says whether message names resource, not just a resource with a longer name.
func names(message, resource string) bool {
	const before, after = `(?:^|[^\w./-])`, `(?:$|[^\w/.-]|\.(?:\W|$))`
	return regexp.MustCompile(before + regexp.QuoteMeta(resource) + after).MatchString(message)
}

// asksOnlyOurs says whether a pod asks for resource, and for no other plugin's.
func asksOnlyOurs(pod *v1.Pod, resource cards.Resource, ours []cards.Resource) bool {
	asks := false
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for name := range container.Resources.Limits {
			asks = asks || string(name) == resource.Name
			isOurs := slices.ContainsFunc(ours, func(own cards.Resource) bool { return own.Name == string(name) })
			if strings.Contains(string(name), "/") && !isOurs {
				return false
			}
		}
	}
	return asks
}
