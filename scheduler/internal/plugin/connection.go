package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"gpushare.io/scheduler/internal/bindcall"
	"gpushare.io/scheduler/internal/bindlease"
	"gpushare.io/scheduler/internal/metrics"
	"gpushare.io/scheduler/internal/sharenodes"
	"gpushare.io/scheduler/internal/takeover"
)

// Args are the plugin's arguments in the configuration of kube-scheduler.
type Args struct {
	// ExtenderLeaseNamespace is the namespace of the Lease that is held by whoever binds pods to cards.
	ExtenderLeaseNamespace string `json:"extenderLeaseNamespace"`
}

func readArgs(raw runtime.Object) (Args, error) {
	args := Args{}
	if err := frameworkruntime.DecodeInto(raw, &args); err != nil {
		return Args{}, fmt.Errorf("the arguments of the plugin %s in pluginConfig: %w", Name, err)
	}
	if args.ExtenderLeaseNamespace == "" {
		return Args{}, fmt.Errorf("the plugin %s needs args.extenderLeaseNamespace in pluginConfig: the namespace of the"+
			" Lease %s, by which one program at a time binds pods to cards", Name, bindlease.Name)
	}
	return args, nil
}

// connection is what the plugin needs of the API server besides the scheduler's own watches.
type connection struct {
	bindings   bindcall.API
	leases     bindlease.Client
	timing     bindlease.Timing
	clock      bindlease.Clock
	shareNodes shareNodes
	// bound calls seen with every bound pod that carries an allocation, as the API server's storage has it.
	bound func(ctx context.Context, seen func(uid types.UID, annotations map[string]string)) error
}

// shareNodes is a watch of GPUShareNodes.
type shareNodes interface {
	Run(ctx context.Context)
	HasSynced() bool
	Silence(now time.Time) time.Duration
}

// connect returns a connection by the configuration of the scheduler's own client.
func connect(handle fwk.Handle, args Args, handler sharenodes.Handler) (*connection, error) {
	config := handle.KubeConfig()
	if config == nil {
		return nil, errors.New("kube-scheduler does not say where the API server is")
	}
	bindings, err := bindcall.NewClient(config)
	if err != nil {
		return nil, err
	}
	leases, err := leaseClient(config, args.ExtenderLeaseNamespace)
	if err != nil {
		return nil, err
	}
	watch, err := sharenodes.NewWatch(config, handler)
	if err != nil {
		return nil, err
	}
	reader, err := takeover.NewReader(config)
	if err != nil {
		return nil, err
	}
	return &connection{bindings, leases, bindlease.RealTiming(), bindlease.RealClock(), watch, reader.Read}, nil
}

// leaseClient returns a client that waits for no other requests: a renewal that comes late stops all Bindings.
func leaseClient(config *rest.Config, namespace string) (bindlease.Client, error) {
	own := rest.CopyConfig(config)
	own.QPS, own.RateLimiter, own.Timeout = -1, nil, bindcall.CallTime
	client, err := coordinationv1.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("a client for Leases: %w", err)
	}
	return client.Leases(namespace), nil
}

// newLease returns the Lease that is held by those who bind.
func (c *core) newLease(ctx context.Context) *bindlease.Lease {
	host, _ := os.Hostname()
	return bindlease.New(bindlease.Config{
		Client:    c.api.leases,
		Identity:  host + "_" + string(uuid.NewUUID()),
		Timing:    c.api.timing,
		Clock:     c.api.clock,
		TakeOver:  c.takeOver,
		Taken:     func() { c.activate(ctx, c.postponed.take()) },
		IsAwaited: func() bool { return !c.postponed.isEmpty() },
	})
}

// takeOver counts what others have bound by now.
func (c *core) takeOver(ctx context.Context) error {
	if err := c.api.bound(ctx, c.cluster.Adopt); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Placing pods that ask for cards", "version", metrics.Version,
		"nodes", len(c.cluster.Names()))
	return nil
}

// confirmTime is between two questions after pods that no watch has shown.
const confirmTime = 10 * time.Second

// confirm asks the API server after pods that were read at a takeover and that no watch has shown for long, until ctx
// ends: they are gone, or the watch is late.
func (c *core) confirm(ctx context.Context) {
	ticker := time.NewTicker(confirmTime)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.confirmOnce(ctx)
		}
	}
}

func (c *core) confirmOnce(ctx context.Context) {
	unseen := c.cluster.Unseen()
	if len(unseen) == 0 {
		return
	}
	present := map[types.UID]bool{}
	if err := c.api.bound(ctx, func(uid types.UID, _ map[string]string) { present[uid] = true }); err != nil {
		klog.FromContext(ctx).Info("Cannot read pods that others have bound: their units stay taken", "pods", len(unseen),
			"reason", err)
		return
	}
	c.cluster.Confirm(unseen, present)
}
