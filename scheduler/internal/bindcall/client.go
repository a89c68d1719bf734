package bindcall

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// API is what a Writer needs of the API server. Each call is one request, and ends within CallTime.
type API interface {
	Bind(ctx context.Context, binding *v1.Binding) error
	// Read returns a pod as the API server's storage has it.
	Read(ctx context.Context, namespace, name string) (*v1.Pod, error)
}

// Client is the API of an API server. Unlike the scheduler's own client it has no limit of requests a second: a
// Binding that waits for its turn there would use up its time.
type Client struct{ rest rest.Interface }

// NewClient returns an error for a configuration that no client can be made of.
func NewClient(config *rest.Config) (Client, error) {
	own := rest.CopyConfig(config)
	own.QPS, own.RateLimiter = -1, nil
	client, err := corev1.NewForConfig(own)
	if err != nil {
		return Client{}, fmt.Errorf("a client for Bindings: %w", err)
	}
	return Client{client.RESTClient()}, nil
}

// Bind implements API.
func (c Client) Bind(ctx context.Context, binding *v1.Binding) error {
	request := c.rest.Post().Namespace(binding.Namespace).Resource("pods").Name(binding.Name).SubResource("binding")
	return once(request).Body(binding).Do(ctx).Error()
}

// Read implements API.
func (c Client) Read(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	pod := &v1.Pod{}
	err := once(c.rest.Get().Namespace(namespace).Resource("pods").Name(name)).Do(ctx).Into(pod)
	return pod, err
}

// once has the API server drop a request after CallTime, which it does not do by itself, and the client not send it
// again, which it does where the API server asks it to come back later: the failure of the first one would be unseen.
func once(request *rest.Request) *rest.Request { return request.Timeout(CallTime).MaxRetries(0) }
