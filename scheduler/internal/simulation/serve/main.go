// Command serve answers the messages on its standard input, one JSON object a line, a line for a line: kube-scheduler with
// our engine, as tests/simulation asks it.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"gpushare.io/scheduler/internal/simulation"
)

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	messages, answers, engines := json.NewDecoder(in), json.NewEncoder(out), simulation.Engines{}
	for {
		var message simulation.Message
		if err := messages.Decode(&message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		answer, err := engines.Take(message)
		if err != nil {
			return fmt.Errorf("%s: %w", message.Do, err)
		}
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
}
