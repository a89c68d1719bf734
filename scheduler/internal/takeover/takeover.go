// Package takeover reads what is bound before a scheduler binds its first pod.
//
// A watch shows what another scheduler has bound with a delay. So the new one reads all bound pods once, as the API
// server's storage has them, and of each only its metadata.
package takeover

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"gpushare.io/scheduler/internal/allocation"
)

const (
	pageSize = 500
	// bound selects the pods that have a node and have not ended.
	bound = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
)

// Reader reads bound pods.
type Reader struct {
	client metadata.Interface
}

// NewReader returns an error for a configuration that no client can be made of.
func NewReader(config *rest.Config) (*Reader, error) {
	client, err := metadata.NewForConfig(metadata.ConfigFor(config))
	if err != nil {
		return nil, fmt.Errorf("a client for pods: %w", err)
	}
	return &Reader{client}, nil
}

// Read calls seen with every bound pod that carries an allocation.
func (r *Reader) Read(ctx context.Context, seen func(uid types.UID, annotations map[string]string)) error {
	pods := r.client.Resource(v1.SchemeGroupVersion.WithResource("pods"))
	options := metav1.ListOptions{FieldSelector: bound, Limit: pageSize}
	for {
		page, err := pods.List(ctx, options)
		if err != nil {
			return err
		}
		for place := range page.Items {
			if pod := &page.Items[place]; pod.Annotations[allocation.Annotation] != "" {
				seen(pod.UID, pod.Annotations)
			}
		}
		if page.Continue == "" {
			return nil
		}
		options.Continue = page.Continue
	}
}
