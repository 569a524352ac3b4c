package template

import (
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// Output is what a template rendered.
type Output struct {
	// Text is the whole text.
	Text string
	// Prints are the parts of Text that actions printed from parameters, in order.
	Prints []Print
}

// Print is a part of a text that one action printed.
type Print struct {
	// Begin and End are the offsets of the part.
	Begin, End int
	Action     *Action
}

// Action is a printing action of a template, such as {{ .Params.NODES }}.
type Action struct {
	// Line of the template, from 1.
	Line int
	// Parameters are the names of all parameters that what is printed may depend on, sorted. They may include some that it does not
	// depend on.
	Parameters []string
	// AnyParameter is true if it may depend on all parameters: the action uses .Params as a whole, or computes a name.
	AnyParameter bool
	// Encoding is the format in which the action encodes what it prints; "" if it encodes nothing.
	Encoding Encoding
	// Break and Indent are the line break and the number of blanks that the action puts in front, by nindent and indent with a constant.
	Break  bool
	Indent int
	// Margin is the number of blanks that they put in front of each further line.
	Margin int
}

// DependsOn reports whether what the action prints may depend on one of the parameters.
func (a *Action) DependsOn(parameters map[string]bool) bool {
	if a.AnyParameter {
		return len(parameters) > 0
	}
	return slices.ContainsFunc(a.Parameters, func(name string) bool { return parameters[name] })
}

// Encoding is a format that preserves the structure of a value.
type Encoding string

// The formats that functions encode values in.
const (
	JSON Encoding = "JSON"
	YAML Encoding = "YAML"
)

// recorder is a writer that rejects more than maxTextBytes, and records what actions print.
type recorder struct {
	strings.Builder
	prints []Print
	// printing is the action whose value is written next: text/template writes each value at once.
	printing *Action
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.Len()+len(p) > maxTextBytes {
		return 0, errTooLong
	}
	if r.printing != nil {
		r.prints = append(r.prints, Print{Begin: r.Len(), End: r.Len() + len(p), Action: r.printing})
		r.printing = nil
	}
	return r.Builder.Write(p)
}

// encoders are the functions that encode their argument.
var encoders = map[string]Encoding{
	"toYaml": YAML,
	"toJson": JSON, "toPrettyJson": JSON, "toRawJson": JSON, "mustToJson": JSON, "mustToPrettyJson": JSON, "mustToRawJson": JSON,
}

// mutators are the functions that change an argument.
var mutators = map[string]bool{
	"set": true, "unset": true, "merge": true, "mergeOverwrite": true, "mustMerge": true, "mustMergeOverwrite": true,
}

const (
	// maxRounds limits the passes over a template in search of all parameters that its variables may hold.
	maxRounds = 8
	// maxNames limits the parameters that are listed for one value; beyond, it counts as depending on all.
	maxNames = 32
)

// kind distinguishes the data of a template and its field .Params, whose fields are known, from all other values.
type kind int

const (
	leaf kind = iota
	root
	params
)

// origin describes a value of a template: what it may depend on, and its format. It never changes.
type origin struct {
	kind     kind
	names    []string
	any      bool
	encoding Encoding
	newline  bool
	indent   int
	margin   int
}

// flat returns the origin as an ordinary value, without its format.
func (s origin) flat() origin { return origin{names: s.names, any: s.any || s.kind != leaf} }

// with returns an ordinary value that depends on both.
func (s origin) with(other origin) origin {
	s, other = s.flat(), other.flat()
	switch {
	case s.any || other.any:
		return origin{any: true}
	case len(other.names) == 0:
		return s
	case len(s.names) == 0:
		return other
	}
	names := slices.Concat(s.names, other.names)
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > maxNames {
		return origin{any: true}
	}
	return origin{names: names}
}

// or returns what describes a variable that holds either value.
func (s origin) or(other origin) origin {
	if s.equal(other) {
		return s
	}
	return s.with(other)
}

func (s origin) equal(other origin) bool {
	return s.kind == other.kind && s.any == other.any && s.encoding == other.encoding && s.newline == other.newline &&
		s.indent == other.indent && s.margin == other.margin && slices.Equal(s.names, other.names)
}

// field returns the origin of a field.
func (s origin) field(name string) origin {
	switch s.kind {
	case root:
		if name == "Params" {
			return origin{kind: params}
		}
		return origin{}
	case params:
		return origin{names: []string{name}}
	default:
		return s.flat()
	}
}

// path returns the origin of a field of a field.
func (s origin) path(names []string) origin {
	for _, name := range names {
		s = s.field(name)
	}
	return s
}

// analysis determines what the actions of a template print. It ignores the order of execution: a variable may hold whatever is assigned to
// a variable of that name anywhere.
type analysis struct {
	// variables and arguments are the sources of variables, and of the arguments of templates, by name.
	variables, arguments map[string]origin
	// mutated is what may be part of every value, because a function puts it into a map.
	mutated origin
	changed bool
	// lost is true if the variables depend on each other in too many ways: every action may depend on all parameters.
	lost    bool
	actions map[*parse.ActionNode]*Action

	// template is the name of the template that is being visited.
	template string
}

// analyze returns the actions of a template that print what depends on parameters.
func analyze(t *template.Template) map[*parse.ActionNode]*Action {
	a := &analysis{variables: map[string]origin{}, arguments: map[string]origin{t.Name(): {kind: root}}, changed: true}
	for round := 0; a.changed; round++ {
		a.changed, a.actions, a.lost = false, map[*parse.ActionNode]*Action{}, round == maxRounds
		for _, each := range t.Templates() {
			if each.Tree != nil && each.Root != nil {
				a.template = each.Name()
				a.list(each.Root, a.arguments[each.Name()])
			}
		}
		if a.lost {
			break
		}
	}
	return a.actions
}

func (a *analysis) list(l *parse.ListNode, dot origin) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		a.node(n, dot)
	}
}

func (a *analysis) node(n parse.Node, dot origin) {
	switch n := n.(type) {
	case *parse.ActionNode:
		value := a.pipe(n.Pipe, dot)
		if len(n.Pipe.Decl) == 0 {
			a.print(n, value)
		}
	case *parse.IfNode:
		a.pipe(n.Pipe, dot)
		a.list(n.List, dot)
		a.list(n.ElseList, dot)
	case *parse.WithNode:
		value := a.pipe(n.Pipe, dot)
		a.list(n.List, value)
		a.list(n.ElseList, dot)
	case *parse.RangeNode:
		items := a.value(n.Pipe, dot).flat()
		a.declare(n.Pipe, items)
		a.list(n.List, items)
		a.list(n.ElseList, dot)
	case *parse.TemplateNode:
		a.assign(a.arguments, n.Name, a.pipe(n.Pipe, dot))
	}
}

// print notes what an action prints.
func (a *analysis) print(n *parse.ActionNode, value origin) {
	if a.lost {
		value = origin{any: true}
	}
	all := value.with(a.mutated)
	if len(all.names) == 0 && !all.any {
		return
	}
	a.actions[n] = &Action{
		Line: n.Line, Parameters: all.names, AnyParameter: all.any,
		Encoding: value.encoding, Break: value.newline, Indent: value.indent, Margin: value.margin,
	}
}

// assign adds a origin to a variable or an argument.
func (a *analysis) assign(to map[string]origin, name string, value origin) {
	before, known := to[name]
	after := value
	if known {
		after = before.or(value)
	}
	if !known || !after.equal(before) {
		to[name], a.changed = after, true
	}
}

// pipe returns the origin of a pipeline, which may be nil, and assigns it to the pipeline's variable.
func (a *analysis) pipe(p *parse.PipeNode, dot origin) origin {
	if p == nil {
		return origin{}
	}
	value := a.value(p, dot)
	a.declare(p, value)
	return value
}

// declare assigns a origin to the variables of a pipeline.
func (a *analysis) declare(p *parse.PipeNode, value origin) {
	for _, variable := range p.Decl {
		a.assign(a.variables, variable.Ident[0], value)
	}
}

// value returns the origin of a pipeline.
func (a *analysis) value(p *parse.PipeNode, dot origin) origin {
	var value origin
	for i, c := range p.Cmds {
		if i == 0 {
			value = a.command(c, dot, nil)
		} else {
			value = a.command(c, dot, &value)
		}
	}
	return value
}

// command returns the origin of a command; piped is its last argument, if any.
func (a *analysis) command(c *parse.CommandNode, dot origin, piped *origin) origin {
	var args []origin
	for _, arg := range c.Args {
		args = append(args, a.argument(arg, dot))
	}
	if piped != nil {
		args = append(args, *piped)
	}
	if function, ok := c.Args[0].(*parse.IdentifierNode); ok {
		return a.call(function.Ident, c.Args[1:], args[1:])
	}
	if len(args) == 1 {
		return args[0]
	}
	return union(args)
}

func union(all []origin) origin {
	var value origin
	for _, each := range all {
		value = value.with(each)
	}
	return value
}

// call returns the origin of a function's result. nodes are its arguments without the piped one.
func (a *analysis) call(function string, nodes []parse.Node, args []origin) origin {
	value := union(args)
	if mutators[function] && !value.with(a.mutated).equal(a.mutated) {
		a.mutated, a.changed = value.with(a.mutated), true
	}
	if encoding, ok := encoders[function]; ok {
		value.encoding = encoding
		return value
	}
	switch {
	case len(args) == 0:
	case function == "index":
		return indexed(nodes, args, value)
	case function == "indent" || function == "nindent":
		return indented(function, nodes, args, value)
	case function == "trim":
		value.encoding, value.margin = args[len(args)-1].encoding, args[len(args)-1].margin
	}
	return value
}

// indexed returns the origin of index MAP KEY…, whose first key may be constant.
func indexed(nodes []parse.Node, args []origin, otherwise origin) origin {
	if len(nodes) < 2 || args[0].kind == leaf {
		return otherwise
	}
	key, constant := nodes[1].(*parse.StringNode)
	if !constant {
		return otherwise
	}
	value := args[0].field(key.Text)
	if len(args) == 2 {
		return value
	}
	return union(append(slices.Clone(args[2:]), value))
}

// indented returns the origin of indent BLANKS TEXT. Its format is only known if the number of blanks is constant.
func indented(function string, nodes []parse.Node, args []origin, value origin) origin {
	if len(args) != 2 || len(nodes) == 0 {
		return value
	}
	blanks, constant := nodes[0].(*parse.NumberNode)
	if !constant || !blanks.IsInt || blanks.Int64 < 0 || blanks.Int64 > maxTextBytes {
		return value
	}
	value.encoding = args[1].encoding
	value.margin = int(blanks.Int64) + args[1].margin
	if !args[1].newline {
		value.newline = function == "nindent"
		value.indent = int(blanks.Int64) + args[1].indent
	}
	return value
}

// argument returns the origin of an argument of a command.
func (a *analysis) argument(n parse.Node, dot origin) origin {
	switch n := n.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return dot.path(n.Ident)
	case *parse.VariableNode:
		return a.variable(n.Ident[0]).path(n.Ident[1:])
	case *parse.ChainNode:
		return a.argument(n.Node, dot).path(n.Field)
	case *parse.PipeNode:
		return a.pipe(n, dot)
	case *parse.IdentifierNode: // a function without arguments
		return a.call(n.Ident, nil, nil)
	default:
		return origin{}
	}
}

// variable returns the origin of a variable; $ is the argument of its template.
func (a *analysis) variable(name string) origin {
	if name == "$" {
		return a.arguments[a.template]
	}
	return a.variables[name]
}
