package template

import (
	"cmp"
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
	// Traces are the parts of Text that depend on sensitive parameters, in order, outer ones before those inside of them: what actions
	// printed, also nothing, and the text of conditions and loops that depend on more than whether a parameter is set.
	Traces []Print
	// Steps is the cost of the execution, about a microsecond each.
	Steps int
}

// Print is a part of a text that one action printed, or that a condition or loop selected.
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
	// Trace is true for an action of Output.Traces: with another value it might print more, also where it prints nothing.
	Trace bool
	// Block describes the condition or loop whose text the action is; nil for an action that prints.
	Block *Block
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
	prints, traces []Print
	// printing is the action whose value is written next: text/template writes each value at once. tracing is the same action as the origin of
	// a trace.
	printing, tracing *Action
	// open are the indexes of the traces of blocks that are being executed.
	open []int
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.Len()+len(p) > maxTextBytes {
		return 0, errTooLong
	}
	if r.printing != nil {
		r.prints = append(r.prints, Print{Begin: r.Len(), End: r.Len() + len(p), Action: r.printing})
	}
	if r.tracing != nil {
		r.traces = append(r.traces, Print{Begin: r.Len(), End: r.Len() + len(p), Action: r.tracing})
	}
	r.printing, r.tracing = nil, nil
	return r.Builder.Write(p)
}

// begin notes the beginning of a block.
func (r *recorder) begin(block *Action) {
	r.open = append(r.open, len(r.traces))
	r.traces = append(r.traces, Print{Begin: r.Len(), Action: block})
}

// end notes the end of a block, and of those inside of it that a break or continue has left; nil ends all.
func (r *recorder) end(block *Action) {
	for len(r.open) > 0 {
		last := &r.traces[r.open[len(r.open)-1]]
		r.open = r.open[:len(r.open)-1]
		last.End = r.Len()
		if last.Action == block {
			return
		}
	}
}

// output returns what was written.
func (r *recorder) output() Output {
	r.end(nil)
	return Output{Text: r.String(), Prints: r.prints, Traces: r.traces}
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

// kind distinguishes the data of a template and its fields .Params and .Cluster, whose fields are known, from all other values.
type kind int

const (
	leaf kind = iota
	root
	params
	cluster
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
	// only, of the data and of .Params, are the parameters to follow; nil follows all.
	only map[string]bool
	// whole is true if nothing but whether parameters are set decides whether the value is empty.
	whole bool
}

// none reports whether the value depends on no parameter.
func (s origin) none() bool { return len(s.names) == 0 && !s.any && s.kind == leaf }

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
	either := s.with(other)
	either.whole = s.isWhole() && other.isWhole()
	return either
}

// isWhole reports whether nothing but whether parameters are set decides whether the value is empty.
func (s origin) isWhole() bool { return s.whole || s.kind != leaf || s.none() }

func (s origin) equal(other origin) bool {
	return s.kind == other.kind && s.any == other.any && s.encoding == other.encoding && s.newline == other.newline &&
		s.indent == other.indent && s.margin == other.margin && s.whole == other.whole && slices.Equal(s.names, other.names)
}

// field returns the origin of a field.
func (s origin) field(name string) origin {
	switch s.kind {
	case root:
		return s.variable(name)
	case cluster:
		return origin{names: []string{clusterVariable + "." + name}, whole: true}
	case params:
		if s.only != nil && !s.only[name] {
			return origin{}
		}
		return origin{names: []string{name}, whole: true}
	default:
		return s.flat()
	}
}

// The variables with facts of the cluster. Their values count as those of parameters of the names .Cluster.NAME and .Capabilities.
const (
	clusterVariable    = ".Cluster"
	capabilityVariable = ".Capabilities"
)

// variable returns the origin of a field of the data. Facts of the cluster are nothing to follow if only some parameters are.
func (s origin) variable(name string) origin {
	switch {
	case name == "Params":
		return origin{kind: params, only: s.only}
	case s.only != nil:
		return origin{}
	case "."+name == clusterVariable:
		return origin{kind: cluster}
	case "."+name == capabilityVariable:
		return origin{names: []string{capabilityVariable}, whole: true}
	default:
		return origin{}
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
//
// If it follows only some parameters, it also follows what conditions and loops select by them: a variable that is assigned under a condition
// depends on the condition. Nothing follows from a condition that only depends on whether parameters are set.
type analysis struct {
	// only are the parameters to follow; nil follows all, and no conditions.
	only map[string]bool
	// variables and arguments are the sources of variables, and of the arguments of templates, by name.
	variables, arguments map[string]origin
	// mutated is what may be part of every value, because a function puts it into a map.
	mutated origin
	changed bool
	// lost is true if the variables depend on each other in too many ways: every action may depend on all parameters.
	lost    bool
	actions map[*parse.ActionNode]*Action

	// blocks are the conditions and loops that depend on the parameters to follow.
	blocks map[parse.Node]*Action
	// selected is what decides whether the visited node is executed, callers what decides whether the template of a name is, and exits what
	// decides when a loop ends.
	selected origin
	callers  map[string]origin
	exits    map[*parse.RangeNode]origin
	// loop is the innermost loop, and block the outermost of the blocks, around the visited node.
	loop  *parse.RangeNode
	block *Action
	// pipelines are those that errors may come from.
	pipelines []pipeline

	// template is the name of the template that is being visited.
	template string
}

// pipeline is a pipeline of a template outside of others, and what its execution and its result depend on.
type pipeline struct {
	tree *parse.Tree
	node parse.Node
	pipe *parse.PipeNode
	origin
	// selected is true if the execution depends on a condition or a loop, and line is where the outermost one begins; 0 if it is in a caller.
	selected bool
	line     int
}

// analyze returns what a template prints that depends on parameters: on all, or only on some, and then also on conditions.
func analyze(t *template.Template, only map[string]bool) *analysis {
	a := &analysis{
		only: only, variables: map[string]origin{}, arguments: map[string]origin{t.Name(): {kind: root, only: only}}, changed: true,
		callers: map[string]origin{}, exits: map[*parse.RangeNode]origin{},
	}
	for round := 0; a.changed; round++ {
		a.changed, a.lost = false, round == maxRounds
		a.actions, a.blocks, a.pipelines = map[*parse.ActionNode]*Action{}, map[parse.Node]*Action{}, nil
		for _, each := range t.Templates() {
			if each.Tree != nil && each.Root != nil {
				a.template, a.selected, a.loop, a.block = each.Name(), a.callers[each.Name()], nil, nil
				a.list(each.Root, a.arguments[each.Name()], each.Tree)
			}
		}
		if a.lost {
			break
		}
	}
	return a
}

func (a *analysis) list(l *parse.ListNode, dot origin, tree *parse.Tree) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		a.node(n, dot, tree)
	}
}

func (a *analysis) node(n parse.Node, dot origin, tree *parse.Tree) {
	switch n := n.(type) {
	case *parse.ActionNode:
		value := a.note(n, n.Pipe, a.pipe(n.Pipe, dot), tree)
		if len(n.Pipe.Decl) == 0 {
			a.print(n, value)
		}
	case *parse.IfNode:
		a.branch(n, &n.BranchNode, a.note(n, n.Pipe, a.pipe(n.Pipe, dot), tree), dot, dot, tree)
	case *parse.WithNode:
		value := a.note(n, n.Pipe, a.pipe(n.Pipe, dot), tree)
		a.branch(n, &n.BranchNode, value, value, dot, tree)
	case *parse.RangeNode:
		value := a.note(n, n.Pipe, a.value(n.Pipe, dot), tree)
		items := value.flat()
		items.whole = value.kind == params
		a.declare(n.Pipe, items)
		outer := a.loop
		a.loop = n
		a.branch(n, &n.BranchNode, value, items, dot, tree)
		a.loop = outer
	case *parse.BreakNode, *parse.ContinueNode:
		if a.loop != nil && !a.selected.none() {
			grow(a, a.exits, a.loop, a.selected)
		}
	case *parse.TemplateNode:
		grow(a, a.arguments, n.Name, a.note(n, n.Pipe, a.pipe(n.Pipe, dot), tree))
		if !a.selected.none() {
			grow(a, a.callers, n.Name, a.selected)
		}
	}
}

// branch visits the branches of a condition or a loop on a value; inside is the dot of the first.
func (a *analysis) branch(n parse.Node, b *parse.BranchNode, value, inside, dot origin, tree *parse.Tree) {
	outer, block := a.selected, a.block
	if decides := a.decides(n, value); !decides.none() {
		a.selected = outer.with(decides)
		a.blocks[n] = &Action{Line: b.Line, Parameters: decides.names, AnyParameter: decides.any, Trace: true, Block: blockOf(b)}
		a.block = cmp.Or(block, a.blocks[n])
	}
	a.list(b.List, inside, tree)
	a.list(b.ElseList, dot, tree)
	a.selected, a.block = outer, block
}

// decides returns the parameters to follow on which the choice of a branch depends.
func (a *analysis) decides(n parse.Node, value origin) origin {
	loop, isLoop := n.(*parse.RangeNode)
	public := value.isWhole() && (!isLoop || value.kind != leaf || value.none()) // a loop also depends on the number of items
	switch {
	case a.only == nil:
		return origin{}
	case a.lost:
		return origin{any: true}
	case public && a.mutated.none():
		return a.exits[loop].flat()
	default:
		return value.with(a.mutated).with(a.exits[loop])
	}
}

// note notes what the pipeline of a node depends on, and returns its value.
func (a *analysis) note(n parse.Node, p *parse.PipeNode, value origin, tree *parse.Tree) origin {
	if a.only == nil || p == nil {
		return value
	}
	noted := pipeline{tree: tree, node: n, pipe: p, origin: value.with(a.mutated).with(a.selected), selected: !a.selected.none()}
	if a.lost {
		noted.origin = origin{any: true}
	}
	if a.block != nil && a.callers[a.template].none() {
		noted.line = a.block.Line
	}
	a.pipelines = append(a.pipelines, noted)
	return value
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
		Encoding: value.encoding, Break: value.newline, Indent: value.indent, Margin: value.margin, Trace: a.only != nil,
	}
}

// grow adds an origin to a variable, an argument, or what decides about a template or a loop.
func grow[K comparable](a *analysis, to map[K]origin, key K, value origin) {
	before, known := to[key]
	after := value
	if known {
		after = before.or(value)
	}
	if !known || !after.equal(before) {
		to[key], a.changed = after, true
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

// declare assigns an origin to the variables of a pipeline.
func (a *analysis) declare(p *parse.PipeNode, value origin) {
	if !a.selected.none() {
		value = value.with(a.selected)
	}
	for _, variable := range p.Decl {
		grow(a, a.variables, variable.Ident[0], value)
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
	outer := a.selected
	for i, arg := range c.Args {
		args = append(args, a.argument(arg, dot))
		if a.only != nil && i > 0 && isLazy(c.Args[0]) && !args[i].isWhole() {
			a.selected = a.selected.with(args[i]) // the others are evaluated or not
		}
	}
	a.selected = outer
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
	a.mutate(function, value)
	if a.only != nil && isPresenceTest(function, nodes, args) {
		return origin{}
	}
	if encoding, ok := encoders[function]; ok {
		value.encoding = encoding
		return value
	}
	switch {
	case len(args) == 0:
	case function == "index":
		return indexOrigin(nodes, args, value)
	case function == "indent" || function == "nindent":
		return indentOrigin(function, nodes, args, value)
	case function == "trim":
		value.encoding, value.margin = args[len(args)-1].encoding, args[len(args)-1].margin
	case choosers[function]:
		value.whole = !slices.ContainsFunc(args, func(arg origin) bool { return !arg.isWhole() })
	}
	return value
}

// mutate notes what a function puts into a map, and conditions on which it does, or sorts a list in place.
func (a *analysis) mutate(function string, value origin) {
	if !mutators[function] && (function != "sortAlpha" || a.selected.none()) {
		return
	}
	if value = value.with(a.selected).with(a.mutated); !value.equal(a.mutated) {
		a.mutated, a.changed = value, true
	}
}

// choosers are the functions that return one of their arguments, depending on which of them are empty.
var choosers = map[string]bool{"and": true, "or": true, "default": true, "coalesce": true}

// isLazy reports whether a function evaluates its arguments only as far as necessary.
func isLazy(function parse.Node) bool {
	name, ok := function.(*parse.IdentifierNode)
	return ok && (name.Ident == "and" || name.Ident == "or")
}

// isPresenceTest reports whether a call depends on nothing but whether parameters are set, or defined.
func isPresenceTest(function string, nodes []parse.Node, args []origin) bool {
	areWhole := !slices.ContainsFunc(args, func(arg origin) bool { return !arg.isWhole() })
	switch function {
	case "hasKey":
		return len(args) > 0 && args[0].kind != leaf && union(args[1:]).none()
	case "eq", "ne":
		return len(args) == 2 && areWhole && slices.ContainsFunc(nodes, isEmptyText)
	case "not", "empty":
		return len(args) == 1 && areWhole
	}
	return false
}

func isEmptyText(n parse.Node) bool {
	text, ok := n.(*parse.StringNode)
	return ok && text.Text == ""
}

// indexOrigin returns the origin of index MAP KEY…, whose first key may be constant.
func indexOrigin(nodes []parse.Node, args []origin, otherwise origin) origin {
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

// indentOrigin returns the origin of indent BLANKS TEXT. Its format is only known if the number of blanks is constant.
func indentOrigin(function string, nodes []parse.Node, args []origin, value origin) origin {
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
