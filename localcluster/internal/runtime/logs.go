package runtime

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	fullLine    = "F"
	partialLine = "P"
	// longestLine is the length at which container runtimes split a line.
	longestLine = 16 * 1024
)

// logFile is a container's log in the CRI format: "<RFC 3339 time> <stream> <F or P> <text>".
type logFile struct {
	path    string
	sources []*os.File
	copies  sync.WaitGroup

	mu   sync.Mutex
	file *os.File
}

func openLog(path string) (*logFile, error) {
	log := &logFile{path: path}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return log, log.reopen()
}

// reopen goes on in a new file at the same path, after the kubelet has moved the old one away.
func (l *logFile) reopen() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.file.Close() // nil before the first call
	l.file = file
	return nil
}

// pipe returns a file that the container's user can write to and reopen; what is written goes to the log.
func (l *logFile) pipe(stream string, user *syscall.Credential) (*os.File, error) {
	source, sink, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if err := sink.Chown(int(user.Uid), int(user.Gid)); err != nil {
		return nil, errors.Join(err, source.Close(), sink.Close())
	}
	l.sources = append(l.sources, source)
	l.copies.Go(func() { l.copy(stream, source) })
	return sink, nil
}

// finish writes what is left in the pipes, which nobody should hold any more, and closes the log.
func (l *logFile) finish() {
	for _, source := range l.sources {
		_ = source.SetReadDeadline(time.Now().Add(outputGrace))
	}
	l.copies.Wait()
	for _, source := range l.sources {
		_ = source.Close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.file.Close()
}

// copy appends what comes from source until it ends. A failed write (a full disk) loses the line, as the
// container must not be held up by it.
func (l *logFile) copy(stream string, source io.Reader) {
	reader := bufio.NewReaderSize(source, longestLine)
	for {
		line, err := reader.ReadSlice('\n')
		l.append(stream, line)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func (l *logFile) append(stream string, line []byte) {
	if len(line) == 0 {
		return
	}
	tag, end := fullLine, ""
	if line[len(line)-1] != '\n' {
		tag, end = partialLine, "\n"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintf(l.file, "%s %s %s %s%s", time.Now().Format(time.RFC3339Nano), stream, tag, line, end)
}
