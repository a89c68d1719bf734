package sharenode

import (
	"cmp"
	"errors"
	"slices"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/dialects"
	"gpushare.io/scheduler/internal/jsontext"
	"gpushare.io/scheduler/internal/unit"
)

// Read returns a GPUShareNode from its JSON; a node that cannot be read takes no pods. It refuses what has not
// even a name.
func Read(raw []byte) (*Node, error) {
	found, err := decode(raw)
	if err == nil {
		return found.node(), nil
	}
	name, nameless := decodeName(raw)
	if nameless != nil {
		return nil, errors.Join(err, nameless)
	}
	reason := "its GPUShareNode cannot be read: " + err.Error()
	return &Node{
		Name:         name,
		Dialect:      dialects.GPUShare,
		Resources:    dialects.GPUShare.Served([]cards.Class{cards.Memory}),
		Preempts:     true,
		ClosedReason: reason,
	}, nil
}

// object is a GPUShareNode as it is written.
type object struct {
	meta   meta
	spec   spec
	status status
}

type meta struct {
	name, deleted string
}

type spec struct {
	unit.Fields
	unitChange, dialect, strategy, preemption, isolation string
}

type status struct {
	unit, dialect, isolation string
	cards                    []card
	conditions               []condition
}

type condition struct{ kind, status, message string }

// card is a card as it is written, with what Card has no place for.
type card struct {
	Card
	computeScore int64
}

// node returns what the object says. Mode and dialect are those in force, which differ from the spec while a unit
// change is blocked.
func (o *object) node() *Node {
	units, err := unit.ParseNode(o.status.unit)
	mode := cards.NodeModes[0]
	if err == nil {
		mode = unit.ModeOf(units)
	}
	node := &Node{
		Name:         o.meta.name,
		Unit:         o.status.unit,
		Units:        units,
		Dialect:      dialects.Named(cmp.Or(o.status.dialect, o.spec.dialect)),
		Strategy:     cards.StrategyNamed(o.spec.strategy),
		Preempts:     o.spec.preemption != "Disabled",
		ClosedReason: o.closedReason(),
	}
	if node.Dialect == nil {
		node.Dialect = dialects.GPUShare
	}
	node.Resources = node.Dialect.Served(mode.Classes)
	node.Cards, node.ComputeScore = o.status.sortedCards()
	node.places = placesOf(node.Cards)
	return node
}

// sortedCards returns the cards in order of index, and the compute score of the fastest.
func (s *status) sortedCards() ([]Card, int64) {
	sorted := make([]Card, len(s.cards))
	fastest := int64(0)
	for place, card := range s.cards {
		sorted[place] = card.Card
		if place == 0 || card.computeScore > fastest {
			fastest = card.computeScore
		}
	}
	slices.SortStableFunc(sorted, func(a, b Card) int { return cmp.Compare(a.Index, b.Index) })
	return sorted, fastest
}

func decode(raw []byte) (*object, error) {
	found := &object{spec: defaultSpec()}
	reader := jsontext.NewReader(raw)
	named := false
	err := reader.Object("object", func(name string) (err error) {
		switch name {
		case "metadata":
			named = true
			found.meta, err = readMeta(reader)
		case "spec":
			found.spec, err = readSpec(reader)
		case "status":
			found.status, err = readStatus(reader)
		default:
			err = reader.Skip()
		}
		return err
	})
	return found, whole(reader, err, named, "metadata")
}

// decodeName reads nothing but the name.
func decodeName(raw []byte) (string, error) {
	reader, found, named := jsontext.NewReader(raw), meta{}, false
	err := reader.Object("object", func(name string) (err error) {
		if name != "metadata" {
			return reader.Skip()
		}
		named = true
		found, err = readMeta(reader)
		return err
	})
	return found.name, whole(reader, err, named, "metadata")
}

// whole returns err, or why the text that was read is not all there.
func whole(reader *jsontext.Reader, err error, named bool, field string) error {
	switch {
	case err != nil:
		return err
	case !named:
		return jsontext.Missing(field)
	}
	return reader.End()
}

func readMeta(reader *jsontext.Reader) (meta, error) {
	var found meta
	named := false
	err := reader.Object("object", func(name string) (err error) {
		switch name {
		case "name":
			named = true
			found.name, err = reader.Text()
		case "deletionTimestamp":
			found.deleted, err = reader.TextOrNull()
		default:
			err = reader.Skip()
		}
		return err
	})
	if err == nil && !named {
		err = jsontext.Missing("name")
	}
	return found, err
}

const noIsolation = "None"

func defaultSpec() spec {
	return spec{
		unitChange: "Drain",
		dialect:    dialects.GPUShare.Name,
		preemption: "Enabled",
		isolation:  noIsolation,
	}
}

func readSpec(reader *jsontext.Reader) (spec, error) {
	found := defaultSpec()
	err := reader.Object("object", func(name string) error { return found.readField(reader, name) })
	return found, err
}

func (s *spec) readField(reader *jsontext.Reader, name string) (err error) {
	switch name {
	case "mode":
		s.Mode, err = reader.Text()
	case "memoryUnit":
		s.MemoryUnit, err = reader.Text()
	case "slicesPerCard":
		s.SlicesPerCard, err = reader.IntOrNull()
	case "unitChange":
		s.unitChange, err = reader.Text()
	case "dialect":
		s.dialect, err = reader.Text()
	case "strategy":
		s.strategy, err = reader.Text()
	case "preemption":
		s.preemption, err = reader.Text()
	case "candidates":
		_, err = reader.IntOrNull()
	case "extenderLogLevel":
		_, err = reader.Text()
	case "isolation":
		s.isolation, err = readIsolation(reader)
	default:
		err = reader.Skip()
	}
	return err
}

func readIsolation(reader *jsontext.Reader) (string, error) {
	memory := noIsolation
	err := reader.Object("object", func(name string) (err error) {
		if name != "memory" {
			return reader.Skip()
		}
		memory, err = reader.Text()
		return err
	})
	return memory, err
}
