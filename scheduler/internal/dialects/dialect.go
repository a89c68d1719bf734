// Package dialects has the names of the systems that gpushare replaces: of extended resources, and of what those
// systems write on pods.
//
// It says the same as core's dialects.
package dialects

import (
	"slices"
	"strings"

	"gpushare.io/scheduler/internal/cards"
)

// Dialect has the names that workloads and nodes of one system see.
type Dialect struct {
	Name string
	// resources has the name of each class, in the order of the classes. A dialect without a name for a class
	// uses ours.
	resources [len(cards.Classes)]cards.Resource
	// shared is a name that others' plugins offer as well: ours only on nodes with this dialect.
	shared string
	words  words
}

const (
	memoryResource = "gpushare.io/memory"
	sliceResource  = "gpushare.io/slice"
	cardResource   = "gpushare.io/card"
)

// The dialects.
var (
	GPUShare = &Dialect{
		Name:      "gpushare.io",
		resources: named(memoryResource, sliceResource, cardResource),
		words:     noWords{},
	}
	all = []*Dialect{
		GPUShare,
		{
			Name:      "aliyun.com",
			resources: named("aliyun.com/gpu-mem", sliceResource, cardResource),
			words:     aliyun,
		},
		{
			Name:      "volcano.sh",
			resources: named("volcano.sh/gpu-memory", sliceResource, "volcano.sh/gpu-number"),
			words:     volcano{},
		},
		{
			Name:      "enflame.com",
			resources: named("enflame.com/gcu-memory", sliceResource, cardResource),
			words:     enflame,
		},
		{
			Name:      "tuya.com",
			resources: named("tuya.com/vcuda-memory", "tuya.com/sgpu", "nvidia.com/gpu"),
			shared:    "nvidia.com/gpu",
			words:     noWords{},
		},
	}
)

func named(memory, slice, card string) [len(cards.Classes)]cards.Resource {
	return [...]cards.Resource{
		{Name: memory, Class: cards.Memory}, {Name: slice, Class: cards.Slice}, {Name: card, Class: cards.Whole},
	}
}

// Named returns the dialect that the API writes as name, nil where there is none.
func Named(name string) *Dialect {
	for _, dialect := range all {
		if dialect.Name == name {
			return dialect
		}
	}
	return nil
}

// Names returns the names of all dialects for people, with commas between.
func Names() string {
	names := make([]string, len(all))
	for place, dialect := range all {
		names[place] = dialect.Name
	}
	return strings.Join(names, ", ")
}

// Served returns the extended resources of a node that serves classes, in their order.
func (d *Dialect) Served(classes []cards.Class) []cards.Resource {
	served := make([]cards.Resource, len(classes))
	for place, class := range classes {
		served[place] = d.resources[slices.Index(cards.Classes[:], class)]
	}
	return served
}

// replaces says whether a resource goes by a name of the system that the dialect replaces, not by one of ours.
func (d *Dialect) replaces(resource string) bool {
	has := func(of *Dialect) bool {
		return slices.ContainsFunc(of.resources[:], func(own cards.Resource) bool { return own.Name == resource })
	}
	return has(d) && !has(GPUShare)
}

// Resources returns the extended resources of all dialects that are ours, each once. A name that others' plugins
// offer as well is ours where isServed says so: while the GPUShareNode of some node has it.
func Resources(isServed func(name string) bool) []cards.Resource {
	var ours []cards.Resource
	for _, dialect := range all {
		for _, resource := range dialect.resources {
			isOthers := resource.Name == dialect.shared && !isServed(resource.Name)
			if !isOthers && !slices.Contains(ours, resource) {
				ours = append(ours, resource)
			}
		}
	}
	return ours
}
