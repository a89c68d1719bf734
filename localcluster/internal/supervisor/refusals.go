package supervisor

import (
	"context"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const podLevelResources = "localcluster-pod-level-resources"

// refusePodLevelResources lets the apiserver say of pods with resources of their own what the kubelet of their node
// would otherwise panic about.
func refusePodLevelResources(ctx context.Context, client kubernetes.Interface) error {
	policies := client.AdmissionregistrationV1()
	policy := &admission.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: podLevelResources},
		Spec: admission.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admission.MatchResources{ResourceRules: []admission.NamedRuleWithOperations{{
				RuleWithOperations: admission.RuleWithOperations{
					Operations: []admission.OperationType{admission.Create},
					Rule: admission.Rule{
						APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{string(corev1.ResourcePods)},
					},
				},
			}}},
			Validations: []admission.Validation{{
				Expression: "!has(object.spec.resources)",
				Message: "this local cluster runs no pod with resources of its own (spec.resources), for it has no cgroups; " +
					"start it with --containerd, or give the resources to the pod's containers",
			}},
		},
	}
	if _, err := policies.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return err
	}
	binding := &admission.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: podLevelResources},
		Spec: admission.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: podLevelResources, ValidationActions: []admission.ValidationAction{admission.Deny},
		},
	}
	_, err := policies.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{})
	return err
}
