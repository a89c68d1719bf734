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
		return 0, &jsontext.ShapeError{Problem: fmt.Sprintf("Invalid enum value %q", name)}
	}
	return class, nil
}

func readShares(reader *jsontext.Reader) ([]cards.Share, error) {
	shares := []cards.Share{}
	err := reader.Map("object", func(card string) error {
		units, err := reader.Int()
		shares = cards.Put(shares, card, units)
		return err
	})
	return shares, err
}

func readContainers(reader *jsontext.Reader) ([]cards.ContainerShares, error) {
	containers := []cards.ContainerShares{}
	err := reader.Map("object", func(name string) error {
		shares, err := readShares(reader)
		for place := range containers {
			if containers[place].Container == name {
				containers[place].Shares = shares
				return err
			}
		}
		containers = append(containers, cards.ContainerShares{Container: name, Shares: shares})
		return err
	})
	return containers, err
}

func readUnits(reader *jsontext.Reader) ([]CardUnit, error) {
	units := []CardUnit{}
	err := reader.Map("object", func(card string) error {
		unit, err := reader.Text()
		for place := range units {
			if units[place].Card == card {
				units[place].Unit = unit
				return err
			}
		}
		units = append(units, CardUnit{card, unit})
		return err
	})
	return units, err
}
