package supervisor

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const (
	pollInterval = 100 * time.Millisecond
	apiPatience  = 2 * time.Minute
)

// awaitAPI waits until the apiserver says it is ready.
func awaitAPI(ctx context.Context, client kubernetes.Interface) error {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, apiPatience, true, func(ctx context.Context) (bool, error) {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the apiserver was not ready after %s: %w", apiPatience, err)
	}
	return nil
}

// missing lists what a cluster still lacks before pods can run everywhere, in words.
func (i *inner) missing(ctx context.Context) []string {
	nodes, err := i.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return []string{"the apiserver does not answer: " + err.Error()}
	}
	if !i.hasBooted() {
		return []string{"nodes are being switched on"}
	}
	wanted := i.machines.list()
	missing := []string{}
	for _, machine := range wanted {
		if machine.isOn() {
			missing = append(missing, lacking(machine, nodes.Items)...)
		}
	}
	if _, err := i.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		missing = append(missing, "the controller manager has not created the default ServiceAccount")
	}
	if slices.ContainsFunc(wanted, func(m *machine) bool { return m.ControlPlane && m.isOn() }) {
		missing = append(missing, i.schedulerMissing(ctx)...)
	}
	return missing
}

func lacking(machine *machine, nodes []corev1.Node) []string {
	at := slices.IndexFunc(nodes, func(node corev1.Node) bool { return node.Name == machine.Name })
	if at < 0 {
		return []string{fmt.Sprintf("node %s has not registered", machine.Name)}
	}
	if !isReady(nodes[at]) {
		return []string{fmt.Sprintf("node %s is not Ready", machine.Name)}
	}
	for key, value := range wantedLabels(machine.Node) {
		if nodes[at].Labels[key] != value {
			return []string{fmt.Sprintf("node %s has not got label %s", machine.Name, key)}
		}
	}
	return nil
}

func isReady(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	}) && !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable
	})
}

// schedulerMissing looks for a live scheduler by its Lease: the pod itself turns Ready only ten seconds later.
func (i *inner) schedulerMissing(ctx context.Context) []string {
	lease, err := i.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, "kube-scheduler", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return []string{"no kube-scheduler is elected"}
	}
	duration := time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
	if time.Now().After(lease.Spec.RenewTime.Add(duration)) {
		return []string{"the elected kube-scheduler is gone"}
	}
	return nil
}
