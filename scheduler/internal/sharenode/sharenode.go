// Package sharenode reads what a node can share from its GPUShareNode.
//
// It says the same as core's scheduling/objects/share_node.py. It reads leniently: an object of a newer version
// may have words that this version does not know.
package sharenode

import (
	"slices"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/dialects"
	"gpushare.io/scheduler/internal/unit"
)

// Node is the part of a GPUShareNode that placement needs. It never changes.
type Node struct {
	Name string
	// Cards are in order of index.
	Cards []Card
	// Unit is the unit in force as text; units of several classes have commas between.
	Unit string
	// Units are one for each class; none when the unit is unknown.
	Units   []unit.Unit
	Dialect *dialects.Dialect
	// Resources are those that the node serves, in the order of their classes.
	Resources []cards.Resource
	Strategy  cards.Strategy
	// Preempts says whether the policy allows that pods are evicted to free a card.
	Preempts bool
	// ComputeScore is that of the node's fastest card.
	ComputeScore int64
	// ClosedReason says why the node takes no pods of ours; empty when it does.
	ClosedReason string
	// places are those of cards, by UUID; nil where they are few.
	places map[string]int
}

// Card is one card as the node's plugin reports it. Amounts are units.
type Card struct {
	UUID      string
	Index     int64
	Units     int64
	IsHealthy bool
	// Allocated is what the kubelet has given out.
	Allocated int64
	Holders   []Holder
	// NUMANode and LinkGroup are negative where they are unknown.
	NUMANode, LinkGroup int64
	// Lock is the one class that the card serves while units of it are in use; none where nothing is.
	Lock       cards.Class
	IsCordoned bool
	offers     offers
}

// offers are, in mode Mixed, the units of each class that a free card offers.
type offers struct {
	known bool // whether any class is named
	units [len(cards.Classes) + 1]int64
}

// Holder is a pod that has units of one card from the kubelet, known to the API or not.
type Holder struct {
	UID string
	// Units is the sum over its containers: more than the pod holds where an init container lends to the next.
	Units int64
	// Least are the units of its largest container.
	Least int64
}

// IsMixed says whether a card that nobody uses is open to several classes.
func (n *Node) IsMixed() bool { return len(n.Resources) > 1 }

// Serves says whether the node serves an extended resource.
func (n *Node) Serves(name string) bool {
	for _, resource := range n.Resources {
		if resource.Name == name {
			return true
		}
	}
	return false
}

// UnitOf returns the unit of a class; the zero Unit when it is unknown.
func (n *Node) UnitOf(class cards.Class) unit.Unit {
	for _, own := range n.Units {
		if own.Class == class {
			return own
		}
	}
	return unit.Unit{}
}

// manyCards are so many that a look at each is slower than a map.
const manyCards = 32

func placesOf(cards []Card) map[string]int {
	if len(cards) < manyCards {
		return nil
	}
	places := make(map[string]int, len(cards))
	for place := range slices.Backward(cards) {
		places[cards[place].UUID] = place
	}
	return places
}

// Card returns the place of a card in Cards, the first where several have the UUID; negative where none has it.
func (n *Node) Card(uuid string) int {
	if n.places != nil {
		if place, has := n.places[uuid]; has {
			return place
		}
		return -1
	}
	for place := range n.Cards {
		if n.Cards[place].UUID == uuid {
			return place
		}
	}
	return -1
}

// Places returns how people name each card, and its units of a class, by UUID.
func (n *Node) Places(class cards.Class) map[string]dialects.Place {
	places := make(map[string]dialects.Place, len(n.Cards))
	for place := range n.Cards {
		card := &n.Cards[place]
		places[card.UUID] = dialects.Place{Index: card.Index, Units: card.UnitsOf(class)}
	}
	return places
}

// IsOpen says whether the card takes new pods.
func (c *Card) IsOpen() bool { return c.IsHealthy && !c.IsCordoned }

// UnitsOf returns the units of a class that the card offers when it is free.
func (c *Card) UnitsOf(class cards.Class) int64 {
	if c.offers.known {
		return c.offers.units[class]
	}
	return c.Units
}

// IsHeldBy says whether the kubelet has given units of the card to a pod.
func (c *Card) IsHeldBy(uid string) bool {
	for place := range c.Holders {
		if c.Holders[place].UID == uid {
			return true
		}
	}
	return false
}
