// Package allocation reads and writes the annotation that says which card each container of a pod has.
//
// It is part of the Binding, so that a pod gets node and card in one step. Whoever copies a pod copies its
// annotations, too: the pod's UID in the annotation shows whether it is a copy. It says the same as core's
// allocation_annotation.py.
package allocation

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/jsontext"
)

// Annotation is the key of the annotation, in every dialect.
const Annotation = "gpushare.io/allocation"

// Allocation is where a pod's units are. Lists of containers and cards are in the order of the text.
type Allocation struct {
	Node, UID string
	// At is when it was granted: RFC 3339, UTC.
	At string
	// Unit is the size of one unit when it was granted, for example 1Gi.
	Unit string
	// Containers are those that ask for units, ordinary init containers too.
	Containers []cards.ContainerShares
	// Class of the units. An annotation without it is from a version that had only memory.
	Class cards.Class
	// Cards are the units of the whole pod. They may be less than the sum over Containers: ordinary init
	// containers lend their units to the containers after them.
	Cards []cards.Share
	// CPU and Memory are quantities.
	CPU, Memory string
	// OtherUnits are those of the cards where the size of one unit is not Unit: a pod may have several classes.
	OtherUnits []CardUnit
}

// CardUnit is the size of one unit of a card (UUID).
type CardUnit struct{ Card, Unit string }

// UnitOf returns the size of one unit of a card.
func (a *Allocation) UnitOf(card string) string {
	for _, other := range a.OtherUnits {
		if other.Card == card {
			return other.Unit
		}
	}
	return a.Unit
}

// Held returns the units of the whole pod on each card, at most jsontext.MaxNumber.
func (a *Allocation) Held() []cards.Share {
	if len(a.Cards) > 0 {
		return a.Cards
	}
	var held []cards.Share
	places := map[string]int{}
	for _, container := range a.Containers {
		for _, share := range container.Shares {
			place, known := places[share.Card]
			if !known {
				place = len(held)
				places[share.Card], held = place, append(held, cards.Share{Card: share.Card})
			}
			held[place].Units = min(held[place].Units+share.Units, jsontext.MaxNumber)
		}
	}
	return held
}

var (
	errBeginning = errors.New("not an allocation: it has to begin with node and uid, each once")
	errNegative  = errors.New("not an allocation: negative units")
)

// Read returns the allocation of the pod with uid. It refuses a text that no program of ours wrote for this pod.
func Read(text, uid string) (*Allocation, error) {
	found, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("not an allocation: %w", err)
	}
	if !strings.HasPrefix(text, beginning(found)) {
		return nil, errBeginning
	}
	if found.UID != uid {
		return nil, fmt.Errorf("the allocation of another pod, with UID %.260s", found.UID)
	}
	if found.hasNegative() {
		return nil, errNegative
	}
	return found, nil
}

func (a *Allocation) hasNegative() bool {
	for _, container := range a.Containers {
		if hasNegative(container.Shares) {
			return true
		}
	}
	return hasNegative(a.Cards)
}

func hasNegative(shares []cards.Share) bool {
	for _, share := range shares {
		if share.Units < 0 {
			return true
		}
	}
	return false
}

// beginning is how the text has to begin: an admission policy sees the first of two equal keys, a reader the last.
func beginning(found *Allocation) string {
	return string(found.appendBeginning(nil))
}

func (a *Allocation) appendBeginning(data []byte) []byte {
	data = jsontext.AppendText(append(data, `{"node":`...), a.Node)
	data = jsontext.AppendText(append(data, `,"uid":`...), a.UID)
	return append(data, ',')
}

// Write returns compact JSON with keys in a fixed order, byte for byte as core writes it: admission policies look
// at its beginning.
func (a *Allocation) Write() string {
	data := a.appendBeginning(nil)
	data = jsontext.AppendText(append(data, `"at":`...), a.At)
	data = jsontext.AppendText(append(data, `,"unit":`...), a.Unit)
	data = append(data, `,"containers":{`...)
	for place, container := range a.Containers {
		data = appendKey(data, place, container.Container)
		data = appendShares(data, container.Shares)
	}
	data = jsontext.AppendText(append(data, `},"resource":`...), a.Class.String())
	data = appendShares(append(data, `,"cards":`...), a.Cards)
	data = jsontext.AppendText(append(data, `,"cpu":`...), a.CPU)
	data = jsontext.AppendText(append(data, `,"memory":`...), a.Memory)
	if len(a.OtherUnits) > 0 {
		data = append(data, `,"other_units":{`...)
		for place, other := range a.OtherUnits {
			data = jsontext.AppendText(appendKey(data, place, other.Card), other.Unit)
		}
		data = append(data, '}')
	}
	return string(append(data, '}'))
}

func appendKey(data []byte, place int, key string) []byte {
	if place > 0 {
		data = append(data, ',')
	}
	return append(jsontext.AppendText(data, key), ':')
}

func appendShares(data []byte, shares []cards.Share) []byte {
	data = append(data, '{')
	for place, share := range shares {
		data = strconv.AppendInt(appendKey(data, place, share.Card), share.Units, 10)
	}
	return append(data, '}')
}
