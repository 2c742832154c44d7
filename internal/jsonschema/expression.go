package jsonschema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of regular expressions.
const (
	maxExpression   = 4 << 10 // bytes of one expression
	maxInstructions = 10_000  // instructions of all expressions of a schema
	// regexFormat is the cost of "format": "regex": parsing a value as an expression takes about as long as running this
	// many instructions.
	regexFormat = 200
)

var errExpressions = fmt.Errorf("is too much work: its regular expressions amount to more than %d instructions; "+
	"shorten them or lower their repeat counts", maxInstructions)

// expressions are the regular expressions of one schema. They are parsed and measured first, and compiled together once
// the whole schema is known to be small enough.
type expressions struct {
	known   map[string]*expression
	total   int   // instructions of all expressions so far
	refused error // the first bound that an expression exceeded
	closed  bool  // the schema is compiled; no more expressions belong to it
}

// An expression is a regular expression of a schema. It implements validator.Regexp.
type expression struct {
	text     string
	length   int // instructions
	compiled *regexp.Regexp
}

func (e *expression) String() string            { return e.text }
func (e *expression) MatchString(s string) bool { return e.compiled.MatchString(s) }

var errTooLong = fmt.Errorf("has a regular expression of more than %d bytes", maxExpression)

// parse is the validator's regular expression engine. The validator calls it for every expression of the schema, first to
// check it and then to keep it, and later for every value whose format is regex.
func (x *expressions) parse(text string) (validator.Regexp, error) {
	if e := x.known[text]; e != nil {
		return e, nil
	}
	if len(text) > maxExpression {
		return nil, x.refuse(errTooLong)
	}
	if x.refused != nil {
		return nil, x.refused
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	e := &expression{text: text, length: programLength(tree)}
	if e.length > maxInstructions {
		return nil, x.refuse(errExpressions)
	}
	if x.closed {
		return e, nil
	}
	if x.total += e.length; x.total > maxInstructions {
		return nil, x.refuse(errExpressions)
	}
	x.known[text] = e
	return e, nil
}

func (x *expressions) refuse(err error) error {
	if !x.closed && x.refused == nil {
		x.refused = err
	}
	return err
}

// compile compiles the expressions and closes the set.
func (x *expressions) compile() error {
	for _, e := range x.known {
		var err error
		if e.compiled, err = regexp.Compile(e.text); err != nil {
			return errors.New("has a regular expression that cannot be compiled")
		}
	}
	x.closed = true
	return nil
}

func instructions(r validator.Regexp) int {
	if e, ok := r.(*expression); ok {
		return e.length
	}
	return 0
}

// programLength is an upper bound of the number of instructions that the parsed expression compiles to. It walks the tree
// as the parser made it, where x{1000} is one node, so that its work does not grow with repeat counts.
func programLength(tree *syntax.Regexp) int {
	const ends = 2 // every program begins with one instruction and ends with another
	return min(ends+length(tree), maxInstructions+1)
}

func length(t *syntax.Regexp) int {
	n := 0
	for _, sub := range t.Sub {
		n = min(n+length(sub), maxInstructions+1)
	}
	switch t.Op {
	case syntax.OpLiteral:
		n = max(1, len(t.Rune))
	case syntax.OpCapture:
		n += 2
	case syntax.OpStar:
		n += 2 // two where the repeated part can be empty
	case syntax.OpPlus, syntax.OpQuest:
		n++
	case syntax.OpAlternate:
		n += len(t.Sub)
	case syntax.OpConcat:
		n = max(1, n)
	case syntax.OpRepeat:
		if t.Max < 0 {
			n = n*max(1, t.Min) + 2
		} else {
			n = max(1, n*t.Max+t.Max-t.Min)
		}
	default:
		n = 1 // one instruction for a character class, an assertion, or an empty match
	}
	return min(n, maxInstructions+1)
}
