package sharenodes

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"gpushare.io/scheduler/internal/sharenode"
)

// Handler is told of every change, one at a time.
type Handler struct {
	// Set is called with each GPUShareNode that is there, and whenever it has changed.
	Set func(*sharenode.Node)
	// Drop is called with the name of one that is gone.
	Drop func(name string)
}

// Watch is a watch of all GPUShareNodes.
type Watch struct {
	informer cache.Controller
	client   rest.Interface
	handler  Handler
	codec    runtime.ParameterCodec
	// sign is when the API server was heard of last, in nanoseconds since 1970; 0 before.
	sign atomic.Int64
}

// NewWatch returns a watch that Run starts. It returns an error for a configuration that no client can be made of.
func NewWatch(config *rest.Config, handler Handler) (*Watch, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, Version)
	scheme.AddKnownTypeWithName(Version.WithKind(kind), &object{})
	scheme.AddKnownTypeWithName(Version.WithKind(kind+"List"), &objects{})
	client, err := rest.RESTClientFor(jsonConfig(config, scheme))
	if err != nil {
		return nil, fmt.Errorf("a client for GPUShareNodes: %w", err)
	}
	w := &Watch{client: client, handler: handler, codec: runtime.NewParameterCodec(scheme)}
	_, w.informer = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{ListWithContextFunc: w.list, WatchFuncWithContext: w.watch},
		ObjectType:    &object{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    w.set,
			UpdateFunc: func(_, now any) { w.set(now) },
			DeleteFunc: w.drop,
		},
	})
	return w, nil
}

// jsonConfig is config for a custom resource, which API servers offer as JSON alone.
func jsonConfig(config *rest.Config, scheme *runtime.Scheme) *rest.Config {
	own := rest.CopyConfig(config)
	own.APIPath, own.GroupVersion = "/apis", &Version
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return own
}

// Run watches until ctx ends.
func (w *Watch) Run(ctx context.Context) { w.informer.RunWithContext(ctx) }

// HasSynced says whether the handler was told of all that was there at the start.
func (w *Watch) HasSynced() bool { return w.informer.HasSynced() }

// Silence returns for how long nothing is heard of the API server, at a time; 0 until it was heard of. It sends a bookmark
// about every minute.
func (w *Watch) Silence(now time.Time) time.Duration {
	if sign := w.sign.Load(); sign != 0 {
		return now.Sub(time.Unix(0, sign))
	}
	return 0
}

func (w *Watch) heard() { w.sign.Store(time.Now().UnixNano()) }

func (w *Watch) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	found := &objects{}
	err := w.client.Get().Resource(resource).VersionedParams(&options, w.codec).Do(ctx).Into(found)
	if err == nil {
		w.heard()
	}
	return found, err
}

func (w *Watch) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	stream, err := w.client.Get().Resource(resource).VersionedParams(&options, w.codec).Watch(ctx)
	if err != nil {
		return nil, err
	}
	w.heard()
	return watch.Filter(stream, func(event watch.Event) (watch.Event, bool) {
		w.heard()
		return event, true
	}), nil
}

func (w *Watch) set(now any) {
	if one, is := now.(*object); is && one.node != nil {
		w.handler.Set(one.node)
	}
}

func (w *Watch) drop(before any) {
	if last, is := before.(cache.DeletedFinalStateUnknown); is {
		w.handler.Drop(last.Key)
		return
	}
	if one, is := before.(*object); is {
		w.handler.Drop(one.Name)
	}
}
