package supervisor

import (
	"context"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"gpushare.io/localcluster/internal/config"
)

func nodeWith(change func(*corev1.Node)) corev1.Node {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", Labels: map[string]string{"zone": "west"}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	change(&node)
	return node
}

func TestLackingSaysWhatANodeWaitsFor(t *testing.T) {
	wanted := &machine{Node: config.Node{Name: "gpu-1", Labels: map[string]string{"zone": "west"}}}
	for name, test := range map[string]struct {
		change func(*corev1.Node)
		wanted string
	}{
		"nothing when all is there": {func(*corev1.Node) {}, ""},
		"registration":              {func(n *corev1.Node) { n.Name = "other" }, "has not registered"},
		"readiness":                 {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, "is not Ready"},
		"the end of the taint":      {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady}} }, "is not Ready"},
		"its labels":                {func(n *corev1.Node) { n.Labels["zone"] = "east" }, "has not got label zone"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(lacking(wanted, []corev1.Node{nodeWith(test.change)}), "; ")
			if (got == "") != (test.wanted == "") || !strings.Contains(got, test.wanted) {
				t.Errorf("lacking %q, wanted %q", got, test.wanted)
			}
		})
	}
}

func TestSchedulerMissingReadsTheLease(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		holder  string
		renewed time.Time
		wanted  string
	}{
		"a live scheduler":     {"control-plane-1", now, ""},
		"one that went":        {"", now, "no kube-scheduler is elected"},
		"one that was cut off": {"control-plane-1", now.Add(-time.Minute), "the elected kube-scheduler is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			lease := &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler"},
				Spec: coordinationv1.LeaseSpec{
					HolderIdentity: &test.holder, RenewTime: ptr.To(metav1.NewMicroTime(test.renewed)), LeaseDurationSeconds: ptr.To[int32](15),
				},
			}
			i := &inner{client: fake.NewClientset(lease)}
			if got := strings.Join(i.schedulerMissing(context.Background()), ""); got != test.wanted {
				t.Errorf("missing %q, wanted %q", got, test.wanted)
			}
		})
	}
}

func TestControlPlaneNodesGetTheirRoleAsLabel(t *testing.T) {
	labels := wantedLabels(config.Node{Labels: map[string]string{"a": "b"}, ControlPlane: true})
	if role, found := labels[controlPlaneLabel]; !found || role != "" || labels["a"] != "b" {
		t.Errorf("labels are %v", labels)
	}
}
