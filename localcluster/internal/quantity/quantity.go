// Package quantity reads amounts with Kubernetes' own parser, so that tests can compare another one with it.
package quantity

import (
	"bufio"
	"encoding/json"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Command reads one JSON string a line from standard input, and writes one Reading a line as JSON.
const Command = "quantities"

// Reading is what Kubernetes makes of a text.
type Reading struct {
	// Amount is the exact decimal number; empty when Kubernetes refuses the text.
	Amount string `json:"amount"`
	// Value is what the scheduler and the kubelet count.
	Value int64 `json:"value"`
}

// Run answers until standard input ends.
func Run() error {
	input, output := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	input.Buffer(nil, 1<<24)
	for input.Scan() {
		var text string
		if err := json.Unmarshal(input.Bytes(), &text); err != nil {
			return err
		}
		if err := output.Encode(read(text)); err != nil {
			return err
		}
	}
	return input.Err()
}

func read(text string) Reading {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return Reading{}
	}
	return Reading{Amount: quantity.AsDec().String(), Value: quantity.Value()}
}
