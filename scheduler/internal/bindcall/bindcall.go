// Package bindcall writes a Binding to the API server until its outcome is certain.
//
// Units that are given back while a Binding may still take effect would be had by two pods. So a Binding whose request
// failed in an unclear way is asked after until the API server says what became of it. It does the same as the
// extender's bind/binding_write.py.
package bindcall

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"gpushare.io/scheduler/internal/allocation"
	"gpushare.io/scheduler/internal/binding"
)

const (
	// callTime is for one request.
	callTime = 4 * time.Second
	// uncertainTime is how long after it was sent a Binding has taken effect, or never will.
	uncertainTime = 3 * callTime
	// sendTime is how long a Binding is sent again: then another attempt of the pod does better.
	sendTime     = 2 * callTime
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = time.Second
)

// ErrBoundBefore is returned for a pod that may have been bound for a while, and is not any more: its kubelet may have
// admitted it.
var ErrBoundBefore = errors.New("the pod may have been bound for a while")

var errChanging = errors.New("somebody changes it again and again while it is being bound")

// Clock is replaced in tests.
type Clock struct {
	Now func() time.Time
	// Sleep returns sooner where ctx ends.
	Sleep func(ctx context.Context, duration time.Duration)
}

// RealClock is the clock of the machine.
func RealClock() Clock {
	return Clock{time.Now, func(ctx context.Context, duration time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(duration):
		}
	}}
}

// Write binds a pod, which was seen unbound as it is, to a node. It returns nil once the pod is surely bound by this
// Binding, and an error once it surely is not, and will not be; ErrBoundBefore is among its causes where it was bound
// meanwhile. Where ctx ends the outcome is not known.
func Write(
	ctx context.Context, pods corev1.PodsGetter, clock Clock, pod *v1.Pod, node string, written binding.Binding,
) error {
	call := &call{
		pods: pods.Pods(pod.Namespace), clock: clock, pod: pod, node: node, written: written,
		sendUntil: clock.Now().Add(sendTime),
	}
	backoff := firstBackoff
	for {
		done, err := call.send(ctx)
		if !done {
			done, err = call.ask(ctx)
		}
		if done || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		clock.Sleep(ctx, max(backoff, call.retryAfter))
		backoff = min(2*backoff, maxBackoff)
	}
}

// call is one Binding on its way.
type call struct {
	pods    corev1.PodInterface
	clock   Clock
	pod     *v1.Pod // as it was seen last
	node    string
	written binding.Binding
	// sendUntil is until when it may be sent.
	sendUntil time.Time
	// uncertainUntil is until when an earlier request may still take effect; zero where none may.
	uncertainUntil time.Time
	isOutdated     bool
	retryAfter     time.Duration
	// failure is why the last request failed.
	failure error
}

// send returns whether it is certain what became of the Binding, and then why it failed.
func (c *call) send(ctx context.Context) (bool, error) {
	if c.isOutdated {
		return false, nil
	}
	if lack := allocation.LackOfRoom(allocation.SizeBesideOurs(c.pod.Annotations), c.written.Room); lack != "" {
		return c.fail(errors.New(lack))
	}
	sent := c.clock.Now()
	if !sent.Before(c.sendUntil) {
		if c.failure == nil {
			c.failure = errors.New("it took too long")
		}
		return c.fail(c.failure)
	}
	bounded, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	err := c.pods.Bind(bounded, c.binding(), metav1.CreateOptions{})
	if err == nil {
		return true, nil
	}
	return c.refused(err, sent)
}

func (c *call) binding() *v1.Binding {
	return &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{
			Name: c.pod.Name, Namespace: c.pod.Namespace, UID: c.pod.UID, ResourceVersion: c.pod.ResourceVersion,
			Annotations: c.written.Annotations,
		},
		Target: v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: c.node},
	}
}

// refused notes how a request failed that was sent at some time. After a conflict the pod has to be read: an earlier
// Binding of ours may be in the way, or the pod was changed.
func (c *call) refused(err error, sent time.Time) (bool, error) {
	c.failure = err
	seconds, _ := apierrors.SuggestsClientDelay(err)
	c.retryAfter = min(time.Duration(seconds)*time.Second, max(0, c.sendUntil.Sub(sent)/2))
	status := apierrors.APIStatus(nil)
	switch {
	case apierrors.IsConflict(err):
		c.isOutdated = true
	case apierrors.IsTooManyRequests(err):
	case errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500:
		return c.fail(err)
	default:
		c.uncertainUntil = sent.Add(uncertainTime)
	}
	return false, nil
}

// fail returns that the Binding has failed, unless an earlier request may have taken effect.
func (c *call) fail(why error) (bool, error) {
	c.failure = why
	if c.uncertainUntil.IsZero() {
		return true, fmt.Errorf("the pod was not bound: %w", why)
	}
	return false, nil
}

// ask reads what became of the pod.
func (c *call) ask(ctx context.Context) (bool, error) {
	asked := c.clock.Now()
	bounded, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	pod, err := c.pods.Get(bounded, c.pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && pod.UID != c.pod.UID:
		return true, c.gone("gone")
	case err != nil:
		return false, nil
	case pod.Spec.NodeName == "":
		return c.stillUnbound(pod, asked)
	case pod.Spec.NodeName == c.node && c.isOurs(pod):
		return true, nil
	}
	return true, c.gone("bound by somebody else")
}

// stillUnbound decides for a pod that is not bound: it was changed, or the Binding has not taken effect yet, or never
// will.
func (c *call) stillUnbound(pod *v1.Pod, asked time.Time) (bool, error) {
	if c.isOutdated || pod.ResourceVersion != c.pod.ResourceVersion {
		if pod.ResourceVersion != c.pod.ResourceVersion {
			c.failure = errChanging
		}
		c.pod, c.isOutdated = pod, false
		return false, nil
	}
	if asked.Before(c.sendUntil) || asked.Before(c.uncertainUntil) {
		return false, nil
	}
	return true, fmt.Errorf("the pod is not bound: %w", c.failure)
}

// isOurs says whether the pod carries the allocation. It compares only the node: a plugin may have written another card
// since.
func (c *call) isOurs(pod *v1.Pod) bool {
	if _, written := c.written.Annotations[allocation.Annotation]; !written {
		return true
	}
	given, err := allocation.Read(pod.Annotations[allocation.Annotation], string(c.pod.UID))
	return err == nil && given.Node == c.node
}

func (c *call) gone(what string) error {
	err := fmt.Errorf("the pod is %s: %w", what, c.failure)
	if !c.uncertainUntil.IsZero() {
		return errors.Join(err, ErrBoundBefore)
	}
	return err
}
