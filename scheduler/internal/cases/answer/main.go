// Command answer reads cases from its standard input, one JSON object a line, and writes an answer for each, a line
// for a line: the other half of python -m tests.engine.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"gpushare.io/scheduler/internal/cases"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	questions, answers := json.NewDecoder(bufio.NewReader(in)), bufio.NewWriter(out)
	for {
		var question cases.Case
		if err := questions.Decode(&question); err == io.EOF {
			return answers.Flush()
		} else if err != nil {
			return err
		}
		answer, err := question.Solve()
		if err != nil {
			return err
		}
		if _, err := answers.Write(append(answer, '\n')); err != nil {
			return err
		}
	}
}
