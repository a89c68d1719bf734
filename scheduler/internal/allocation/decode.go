package allocation

import (
	"fmt"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/jsontext"
)

var required = [...]string{"node", "uid", "at", "unit", "containers"}

// decode reads the annotation's JSON, and nothing of what it has to say of a pod.
func decode(text string) (*Allocation, error) {
	found := &Allocation{Class: cards.Memory, CPU: "0", Memory: "0"}
	reader, seen := jsontext.NewReader([]byte(text)), map[string]bool{}
	err := reader.Object("object", func(name string) error {
		seen[name] = true
		return found.readField(reader, name)
	})
	if err == nil {
		err = reader.End()
	}
	for _, name := range required {
		if err == nil && !seen[name] {
			err = jsontext.Missing(name)
		}
	}
	return found, err
}

func (a *Allocation) readField(reader *jsontext.Reader, name string) (err error) {
	switch name {
	case "node":
		a.Node, err = reader.Text()
	case "uid":
		a.UID, err = reader.Text()
	case "at":
		a.At, err = reader.Text()
	case "unit":
		a.Unit, err = reader.Text()
	case "cpu":
		a.CPU, err = reader.Text()
	case "memory":
		a.Memory, err = reader.Text()
	case "resource":
		a.Class, err = readClass(reader)
	case "cards":
		a.Cards, err = readShares(reader)
	case "containers":
		a.Containers, err = readContainers(reader)
	case "other_units":
		a.OtherUnits, err = readUnits(reader)
	default:
		err = reader.Skip()
	}
	return err
}

func readClass(reader *jsontext.Reader) (cards.Class, error) {
	name, err := reader.Text()
	if err != nil {
		return 0, err
	}
	class, ok := cards.ClassNamed(name)
	if !ok {
		return 0, &jsontext.ShapeError{Problem: fmt.Sprintf("Invalid enum value %.200q", name)}
	}
	return class, nil
}

func readShares(reader *jsontext.Reader) ([]cards.Share, error) {
	entries, err := jsontext.Entries(reader, (*jsontext.Reader).Int)
	shares := make([]cards.Share, len(entries))
	for place, entry := range entries {
		shares[place] = cards.Share{Card: entry.Key, Units: entry.Value}
	}
	return shares, err
}

func readContainers(reader *jsontext.Reader) ([]cards.ContainerShares, error) {
	entries, err := jsontext.Entries(reader, readShares)
	containers := make([]cards.ContainerShares, len(entries))
	for place, entry := range entries {
		containers[place] = cards.ContainerShares{Container: entry.Key, Shares: entry.Value}
	}
	return containers, err
}

func readUnits(reader *jsontext.Reader) ([]CardUnit, error) {
	entries, err := jsontext.Entries(reader, (*jsontext.Reader).Text)
	units := make([]CardUnit, len(entries))
	for place, entry := range entries {
		units[place] = CardUnit{entry.Key, entry.Value}
	}
	return units, err
}
