package cards

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"gpushare.io/scheduler/internal/quantity"
)

// MaxUnits is how many units a pod may have. Since 1.36 the kubelet lists each unit in the pod's status, in 44
// bytes, and the API server takes no write of more than 3 MiB: with more units it would not hear that the pod
// runs, or has ended.
const MaxUnits = 65_536

// maxContainersShown is how many containers a sentence for people names.
const maxContainersShown = 4

// Container is what decides of a container what it asks for. Amounts are quantities as text.
type Container struct {
	Name string
	// Stays says of an init container that it runs on beside the containers after it: its restartPolicy is
	// Always.
	Stays    bool
	Limits   map[string]string
	Requests map[string]string
}

// Pod is what decides of a pod what it asks for.
type Pod struct {
	InitContainers []Container
	Containers     []Container
}

// Resource is an extended resource of ours.
type Resource struct {
	Name  string
	Class Class
}

// Amount is what one container asks for, in units.
type Amount struct {
	Container string
	Units     int64
}

// Part is what a pod asks of one extended resource.
type Part struct {
	Resource
	// Total is the most units that the pod holds at any moment, MaxInt64 where it is more than that.
	Total int64
	// Containers are those that ask, in the order in which the kubelet starts them.
	Containers []Amount
	// exact is Total, however large.
	exact *big.Int
}

// Request is what a pod asks for.
type Request struct {
	// Parts are one for each extended resource that the pod asks for, in the order of their classes.
	Parts []Part
	// Lending are the names of the ordinary init containers, whether they ask or not: what they have is had by
	// the containers after them.
	Lending []string
	// CPU and Memory are quantities: the requests of the containers that run together.
	CPU, Memory string
}

// ReadRequest returns what pod asks of resources, which are in the order of their names' dialects. Amounts are
// rounded up as by Quantity.Value.
func ReadRequest(pod Pod, resources []Resource) Request {
	var request Request
	for _, resource := range resources {
		if part, asks := partOf(pod, resource); asks {
			request.Parts = append(request.Parts, part)
		}
	}
	slices.SortStableFunc(request.Parts, func(a, b Part) int { return int(a.Class) - int(b.Class) })
	var together []Container
	for _, container := range pod.InitContainers {
		if container.Stays {
			together = append(together, container)
		} else {
			request.Lending = append(request.Lending, container.Name)
		}
	}
	together = append(together, pod.Containers...)
	request.CPU = quantity.Sum(requestsOf(together, "cpu"))
	request.Memory = quantity.Sum(requestsOf(together, "memory"))
	return request
}

// partOf returns what the pod asks of a resource; false where that is nothing.
func partOf(pod Pod, resource Resource) (Part, bool) {
	part := Part{Resource: resource}
	staying, peak := new(big.Int), new(big.Int)
	for _, container := range pod.InitContainers {
		units := part.add(container)
		peak = larger(peak, new(big.Int).Add(staying, units))
		if container.Stays {
			staying.Add(staying, units)
		}
	}
	for _, container := range pod.Containers {
		staying.Add(staying, part.add(container))
	}
	part.Containers = lastOfEach(part.Containers)
	part.exact = larger(peak, staying)
	part.Total = math.MaxInt64
	if part.exact.IsInt64() {
		part.Total = part.exact.Int64()
	}
	return part, part.Total > 0
}

// add notes what a container asks for, and returns it.
func (p *Part) add(container Container) *big.Int {
	text, asks := container.Limits[p.Name]
	if !asks {
		return new(big.Int)
	}
	units := quantity.Read(text).Ceil()
	if units > 0 {
		p.Containers = append(p.Containers, Amount{container.Name, units})
	}
	return big.NewInt(units)
}

// lastOfEach returns one amount for each name: the last one, in the place of the first.
func lastOfEach(amounts []Amount) []Amount {
	if len(amounts) < 2 {
		return amounts
	}
	places, kept := make(map[string]int, len(amounts)), amounts[:0]
	for _, amount := range amounts {
		if place, known := places[amount.Container]; known {
			kept[place] = amount
			continue
		}
		places[amount.Container] = len(kept)
		kept = append(kept, amount)
	}
	return kept
}

func larger(a, b *big.Int) *big.Int {
	if a.Cmp(b) >= 0 {
		return a
	}
	return b
}

// requestsOf returns the amounts that containers request of CPU or memory. A limit stands for a request that is
// not there.
func requestsOf(containers []Container, resource string) []string {
	var amounts []string
	for _, container := range containers {
		if amount, ok := container.Requests[resource]; ok {
			amounts = append(amounts, amount)
		} else if amount, ok := container.Limits[resource]; ok {
			amounts = append(amounts, amount)
		}
	}
	return amounts
}

// Unservable returns for people why the pod fits no node, whatever is free there; empty where it may fit one.
func (r Request) Unservable() string {
	if reason := r.Crowded(); reason != "" {
		return reason
	}
	return r.TooManyUnits()
}

// TooManyUnits returns for people why a pod with more than MaxUnits fits nowhere; empty for all others.
func (r Request) TooManyUnits() string {
	total := new(big.Int)
	for _, part := range r.Parts {
		total.Add(total, part.exact)
	}
	if total.IsInt64() && total.Int64() <= MaxUnits {
		return ""
	}
	return fmt.Sprintf("the pod asks for %s units, but a pod may have at most %d: the kubelet lists every unit in the pod's"+
		" status, and the API server refuses a longer list; ask for fewer, or set a larger memoryUnit in the"+
		" policy", total, MaxUnits)
}

// Crowded returns for people why a pod fits nowhere: a container asks for several resources, and the kubelet
// would give it the environment of one of them only. Empty where no container does.
func (r Request) Crowded() string {
	crowded, is := r.firstCrowded()
	if !is {
		return ""
	}
	var asked []string
	for _, part := range r.Parts {
		if part.asks(crowded) {
			asked = append(asked, part.Name)
		}
	}
	return fmt.Sprintf("container %s asks for %s together: ask for each of them in a container of its own",
		crowded, strings.Join(asked, " and "))
}

// firstCrowded returns the name of a container that asks for several resources: the one that the parts name first.
func (r Request) firstCrowded() (string, bool) {
	if len(r.Parts) < 2 {
		return "", false
	}
	asked := map[string]int{}
	for _, part := range r.Parts {
		for _, amount := range part.Containers {
			asked[amount.Container]++
		}
	}
	for _, part := range r.Parts {
		for _, amount := range part.Containers {
			if asked[amount.Container] > 1 {
				return amount.Container, true
			}
		}
	}
	return "", false
}

func (p Part) asks(container string) bool {
	return slices.ContainsFunc(p.Containers, func(a Amount) bool { return a.Container == container })
}

// ByContainer returns for people, in brackets, how much each container asks for; empty where these do not add up
// to the total.
func (p Part) ByContainer() string {
	sum := new(big.Int)
	for _, amount := range p.Containers {
		sum.Add(sum, big.NewInt(amount.Units))
	}
	if len(p.Containers) < 2 || sum.Cmp(p.exact) != 0 {
		return ""
	}
	shown := p.Containers[:min(len(p.Containers), maxContainersShown)]
	texts := make([]string, len(shown))
	for place, amount := range shown {
		texts[place] = fmt.Sprintf("%s %d", amount.Container, amount.Units)
	}
	rest := ""
	if more := len(p.Containers) - len(shown); more > 0 {
		rest = fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf(" (its containers together: %s%s)", strings.Join(texts, ", "), rest)
}
