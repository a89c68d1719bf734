// Package pauses keeps pods away for a while from a node whose kubelet rejects them.
//
// The units of a plugin that goes away leave the node only later. Until then the kubelet fails each pod that comes, for
// good. The sign is a pod that is gone right after its bind: its status says whether it was rejected or ended by itself.
// It does the same as the extender's bind/node_pauses.py.
package pauses

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// rightAfter is how long after its bind the end of a pod is looked at.
	rightAfter = 10 * time.Second
	firstPause = 5 * time.Second
	maxPause   = time.Minute
	// maxReads are so many at a time, of a node one: a missed sign comes again with the next pod.
	maxReads = 4
	readTime = 4 * time.Second
)

// Cluster is what pauses need of the cluster.
type Cluster struct {
	Now func() time.Time
	// Read returns a pod as the API server has it.
	Read func(ctx context.Context, namespace, name string) (*v1.Pod, error)
	// Rejection returns why the node's kubelet did not admit a pod because of our resources; else an empty text.
	Rejection func(node string, pod *v1.Pod) string
	// Changed is told the name of a node that is paused, or is no more.
	Changed func(node string)
}

// Pauses are the nodes that take no pods for a while. Pauses of a node are longer each time, until a pod stays or the
// node's plugin reports. Methods may be called from several goroutines.
type Pauses struct {
	cluster Cluster
	mutex   sync.Mutex
	recent  map[types.UID]bind
	// rejections are how many pauses there were in a row, by node.
	rejections map[string]int
	paused     map[string]pause
	// reads are under way, by node: each counts unless the node's plugin reports meanwhile.
	reads map[string]bool
	// number is how many nodes are paused: it is asked for every node in every attempt, and is nearly always 0.
	number atomic.Int32
}

type bind struct {
	pod  *v1.Pod
	node string
	at   time.Time
}

type pause struct {
	until  time.Time
	reason string
}

// New returns Pauses without any.
func New(cluster Cluster) *Pauses {
	return &Pauses{
		cluster: cluster, recent: map[types.UID]bind{}, rejections: map[string]int{}, paused: map[string]pause{},
		reads: map[string]bool{},
	}
}

// Reason returns for people why a node takes no pods for a while; empty when it does.
func (p *Pauses) Reason(node string) string {
	if p.number.Load() == 0 {
		return ""
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.paused[node].reason
}

// Bound says that a pod was bound to a node just now.
func (p *Pauses) Bound(pod *v1.Pod, node string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.recent[pod.UID] = bind{pod, node, p.cluster.Now()}
}

// Gone says that a pod is gone, or has ended. Where the node's plugin has reported it, the kubelet has admitted it.
func (p *Pauses) Gone(uid types.UID, wasReported bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	bound, isRecent := p.recent[uid]
	delete(p.recent, uid)
	_, isPaused := p.paused[bound.node]
	_, isRead := p.reads[bound.node]
	isLate := p.cluster.Now().Sub(bound.at) > rightAfter
	if !isRecent || isLate || wasReported || isPaused || isRead || len(p.reads) >= maxReads {
		return
	}
	p.reads[bound.node] = true
	go p.look(bound)
}

// look reads what became of a pod.
func (p *Pauses) look(bound bind) {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	pod, err := p.cluster.Read(ctx, bound.pod.Namespace, bound.pod.Name)
	reason := ""
	if err == nil && pod.UID == bound.pod.UID {
		reason = p.cluster.Rejection(bound.node, pod)
	}
	p.mutex.Lock()
	isRejected := reason != "" && p.reads[bound.node]
	delete(p.reads, bound.node)
	if isRejected {
		p.pause(bound.node, reason)
	}
	p.mutex.Unlock()
	if isRejected {
		p.cluster.Changed(bound.node)
	}
}

func (p *Pauses) pause(node, reason string) {
	p.rejections[node]++
	duration := firstPause
	for range p.rejections[node] - 1 {
		duration = min(2*duration, maxPause)
	}
	p.paused[node] = pause{p.cluster.Now().Add(duration), fmt.Sprintf("node takes no pods for %.0f s: its kubelet rejected"+
		" one (%s), the gpushare plugin there may be down", duration.Seconds(), reason)}
	p.number.Store(int32(len(p.paused)))
}

// Reported says that the node's plugin is there: earlier rejections count no longer.
func (p *Pauses) Reported(node string) {
	p.mutex.Lock()
	_, wasPaused := p.paused[node]
	delete(p.paused, node)
	delete(p.rejections, node)
	if _, isRead := p.reads[node]; isRead {
		p.reads[node] = false
	}
	p.number.Store(int32(len(p.paused)))
	p.mutex.Unlock()
	if wasPaused {
		p.cluster.Changed(node)
	}
}

// Tick ends every pause when its time has come. To be called once a second.
func (p *Pauses) Tick() {
	now, ended := p.cluster.Now(), []string(nil)
	p.mutex.Lock()
	for node, one := range p.paused {
		if !now.Before(one.until) {
			delete(p.paused, node)
			ended = append(ended, node)
		}
	}
	for uid, bound := range p.recent {
		if now.Sub(bound.at) > rightAfter {
			delete(p.recent, uid)
			delete(p.rejections, bound.node) // a pod has stayed
		}
	}
	p.number.Store(int32(len(p.paused)))
	p.mutex.Unlock()
	for _, node := range ended {
		p.cluster.Changed(node)
	}
}
