package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// columnKind says how a column is written.
type columnKind int

const (
	text   columnKind = iota // cut at its end if there is no room
	id                       // shortened in the middle if there is no room
	when                     // relative on a terminal
	number                   // right aligned
	mark                     // "*" for true
)

// A column shows one member of each item.
type column struct {
	title string
	path  string // of the member, such as "delivery.status"
	kind  columnKind
	spare bool // left out if there is no room for all
	// show writes the value in place of the usual text.
	show func(item any) string
}

// cell is the text of a column in a row.
func (c *column) cell(s *Session, item any) string {
	if c.show != nil {
		return Printable(c.show(item))
	}
	v := dig(item, c.path)
	switch c.kind {
	case mark:
		if v == true {
			return "*"
		}
		return ""
	case when:
		if text, ok := v.(string); ok && s.Width > 0 {
			if t, err := time.Parse(time.RFC3339, text); err == nil {
				return ago(t, s.Now())
			}
		}
	}
	return plain(v)
}

const gap = "  "

// Widths below which texts are not cut: while there are spare columns, and without them.
const (
	readableText = 24
	leastText    = 8
)

// printTable writes items as a table that fits the terminal.
func (s *Session) printTable(columns []column, items []json.RawMessage) error {
	rows := make([][]string, 0, len(items))
	for _, item := range items {
		v, err := parseValue(item)
		if err != nil {
			return err
		}
		row := make([]string, len(columns))
		for i := range columns {
			row[i] = columns[i].cell(s, v)
		}
		rows = append(rows, row)
	}
	_, err := fmt.Fprint(s.Stdout, layOut(columns, rows, s.Width))
	return err
}

// layOut writes rows below the titles, in at most width columns if width is not 0 and that is possible.
func layOut(columns []column, rows [][]string, width int) string {
	columns, rows, widths := fit(columns, rows, width)
	var b strings.Builder
	line := func(cells []string) {
		var l strings.Builder
		for i, cell := range cells {
			cell = clip(cell, widths[i])
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if columns[i].kind == number {
				l.WriteString(padding + cell)
			} else {
				l.WriteString(cell + padding)
			}
			l.WriteString(gap)
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	titles := make([]string, len(columns))
	for i := range columns {
		titles[i] = columns[i].title
	}
	line(titles)
	for _, r := range rows {
		line(r)
	}
	return b.String()
}

// fit chooses columns and their widths: it leaves out spare columns that are empty, then shortens ids, then cuts long texts, then leaves
// out the other spare columns from the right, then cuts all texts.
func fit(columns []column, rows [][]string, width int) ([]column, [][]string, []int) {
	widths := measure(columns, rows)
	if width <= 0 || total(widths) <= width {
		return columns, rows, widths
	}
	for i := len(columns) - 1; i >= 0; i-- {
		if columns[i].spare && !slices.ContainsFunc(rows, func(r []string) bool { return r[i] != "" }) {
			columns, rows = without(columns, rows, i)
		}
	}
	for i := range columns {
		if columns[i].kind == id {
			for _, r := range rows {
				r[i] = shortID(r[i])
			}
		}
	}
	for {
		widths = measure(columns, rows)
		if cut(columns, widths, width, readableText) {
			return columns, rows, widths
		}
		last := len(columns) - 1
		for last >= 0 && !columns[last].spare {
			last--
		}
		if last < 0 {
			cut(columns, widths, width, leastText)
			return columns, rows, widths
		}
		columns, rows = without(columns, rows, last)
	}
}

// cut makes texts narrower, the longest first, but none narrower than least or its title. It reports whether the table fits.
func cut(columns []column, widths []int, width, least int) bool {
	for total(widths) > width {
		longest := -1
		for i := range columns {
			if columns[i].kind == text && widths[i] > max(least, utf8.RuneCountInString(columns[i].title)) && (longest < 0 || widths[i] > widths[longest]) {
				longest = i
			}
		}
		if longest < 0 {
			return false
		}
		widths[longest]--
	}
	return true
}

// without leaves a column out.
func without(columns []column, rows [][]string, at int) ([]column, [][]string) {
	kept := append(append([]column{}, columns[:at]...), columns[at+1:]...)
	out := make([][]string, len(rows))
	for i, r := range rows {
		out[i] = append(append([]string{}, r[:at]...), r[at+1:]...)
	}
	return kept, out
}

func measure(columns []column, rows [][]string) []int {
	widths := make([]int, len(columns))
	for i := range columns {
		widths[i] = utf8.RuneCountInString(columns[i].title)
		for _, r := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(r[i]))
		}
	}
	return widths
}

func total(widths []int) int {
	sum := len(gap) * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

// clip cuts a text at its end.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	if n < 1 {
		return ""
	}
	return string([]rune(s)[:n-1]) + "…"
}

// printRows writes items as printTable does, without titles.
func (s *Session) printRows(columns []column, items []json.RawMessage) error {
	bare := append([]column{}, columns...)
	for i := range bare {
		bare[i].title = ""
	}
	var b strings.Builder
	inner := *s
	inner.Stdout = &b
	if err := inner.printTable(bare, items); err != nil {
		return err
	}
	_, rows, _ := strings.Cut(b.String(), "\n")
	_, err := fmt.Fprint(s.Stdout, rows)
	return err
}
