package template

import (
	"reflect"
	"strconv"
	"text/template"
	"text/template/parse"
)

// The functions that instrument adds to a template. Templates cannot call them: they do not exist during parsing.
const (
	// passFunction spends the cost of one pass through a body.
	passFunction = "pass"
	// weighFunction weighs a value, and returns it.
	weighFunction = "weigh"
	// printFunction weighs a value that text/template is about to print, and returns it.
	printFunction = "weighAndPrint"
	// beginFunction and endFunction note the beginning and the end of a block.
	beginFunction, endFunction = "beginBlock", "endBlock"
)

// instrumentation is the budget of one run of a parsed template.
type instrumentation struct {
	budget budget
	// called holds the names of the functions that the template calls.
	called map[string]bool
	// printed are the actions that print what depends on parameters, and confidential those that depend on sensitive ones; noted are the
	// same, in the order in which the body refers to them.
	printed, confidential *analysis
	noted                 []notedAction
	out                   recorder
}

// notedAction is an action whose text is recorded, as a print and as a trace.
type notedAction struct{ print, trace *Action }

// instrument makes a parsed template spend its cost from maxSteps, for one execution: every body that may repeat, of a loop or of a
// template, spends its steps first, every function its cost, and every printed value is weighed. The result's out receives the text. sensitive
// are the names of sensitive parameters.
func instrument(t *template.Template, sensitive map[string]bool) *instrumentation {
	i := &instrumentation{budget: budget{steps: maxSteps}, called: map[string]bool{}, printed: analyze(t, nil), confidential: &analysis{}}
	if len(sensitive) > 0 {
		i.confidential = analyze(t, sensitive)
	}
	for _, each := range t.Templates() {
		if each.Tree == nil || each.Root == nil {
			continue
		}
		body := i.list(each.Root)
		prepend(each.Root, body.nodes+stepsPerLevel*body.levels)
	}
	t.Funcs(i.functions())
	return i
}

// size is the cost of one pass through a part of a template, and its depth.
type size struct{ nodes, levels int }

// with returns the size of two adjacent parts.
func (s size) with(other size) size {
	return size{s.nodes + other.nodes, max(s.levels, other.levels)}
}

// within returns the size of a part as part of a node.
func (s size) within() size { return size{s.nodes + 1, s.levels + 1} }

// list instruments a body.
func (i *instrumentation) list(l *parse.ListNode) size {
	var total size
	if l == nil {
		return total
	}
	var nodes []parse.Node
	for _, n := range l.Nodes {
		total = total.with(i.node(n))
		if block, isBlock := i.confidential.blocks[n]; isBlock {
			id := number(n.Position(), i.note(nil, block))
			nodes = append(nodes, action(n.Position(), call(n.Position(), beginFunction, id)), n, action(n.Position(), call(n.Position(), endFunction, id)))
			total.nodes += 2
		} else {
			nodes = append(nodes, n)
		}
	}
	l.Nodes = nodes
	return total
}

// note returns the number under which the body refers to an action.
func (i *instrumentation) note(print, trace *Action) int {
	i.noted = append(i.noted, notedAction{print: print, trace: trace})
	return len(i.noted) - 1
}

// node instruments a node of a body.
func (i *instrumentation) node(n parse.Node) size {
	switch n := n.(type) {
	case *parse.ActionNode:
		total := i.pipe(n.Pipe)
		if len(n.Pipe.Decl) == 0 { // it prints its value
			n.Pipe.Cmds = append(n.Pipe.Cmds, i.printCall(n))
		}
		return total.within()
	case *parse.IfNode:
		return i.branch(&n.BranchNode)
	case *parse.WithNode:
		return i.branch(&n.BranchNode)
	case *parse.RangeNode:
		body := i.list(n.List)
		prepend(n.List, 1+body.nodes)
		return size{0, body.levels}.with(i.list(n.ElseList)).with(i.pipe(n.Pipe)).within()
	case *parse.TemplateNode:
		return i.pipe(n.Pipe).within()
	default:
		return size{1, 1}
	}
}

// printCall returns the call that precedes the printing of an action.
func (i *instrumentation) printCall(n *parse.ActionNode) *parse.CommandNode {
	print, trace := i.printed.actions[n], i.confidential.actions[n]
	if print == nil && trace == nil {
		return call(n.Pos, weighFunction)
	}
	return call(n.Pos, printFunction, number(n.Pos, i.note(print, trace)))
}

func (i *instrumentation) branch(b *parse.BranchNode) size {
	return i.list(b.List).with(i.list(b.ElseList)).with(i.pipe(b.Pipe)).within()
}

// pipe instruments a pipeline, which may be nil.
func (i *instrumentation) pipe(p *parse.PipeNode) size {
	var total size
	if p == nil {
		return total
	}
	var commands []*parse.CommandNode
	for _, c := range p.Cmds {
		comparison := i.command(c, &total)
		if comparison && len(commands) > 0 {
			commands = append(commands, call(c.Pos, weighFunction))
		}
		commands = append(commands, c)
	}
	p.Cmds = commands
	return total.within()
}

// command instruments a command and adds its size. The comparisons of text/template print values that they cannot compare, so their
// arguments are weighed. The result reports whether the command is a comparison, which applies to its piped argument.
func (i *instrumentation) command(c *parse.CommandNode, total *size) (comparison bool) {
	function, ok := c.Args[0].(*parse.IdentifierNode)
	if ok {
		i.called[function.Ident] = true
		comparison = function.Ident == "eq" || function.Ident == "ne"
	}
	for at, arg := range c.Args {
		*total = total.with(i.argument(arg))
		if comparison && at > 0 {
			c.Args[at] = pipeToWeigh(arg)
		}
	}
	return comparison
}

// argument instruments an argument of a command.
func (i *instrumentation) argument(n parse.Node) size {
	switch n := n.(type) {
	case *parse.PipeNode:
		return i.pipe(n)
	case *parse.ChainNode:
		return i.argument(n.Node).within()
	case *parse.IdentifierNode:
		i.called[n.Ident] = true
	}
	return size{1, 1}
}

// pipeToWeigh returns an argument in parentheses, piped to the weigh function; literals are returned unchanged.
func pipeToWeigh(arg parse.Node) parse.Node {
	switch arg.Type() {
	case parse.NodeNil, parse.NodeBool, parse.NodeNumber, parse.NodeString:
		return arg
	}
	value := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: arg.Position(), Args: []parse.Node{arg}}
	return pipeOf(arg.Position(), value, call(arg.Position(), weighFunction))
}

// prepend makes a body spend the cost of one pass first.
func prepend(l *parse.ListNode, steps int) {
	l.Nodes = append([]parse.Node{action(l.Pos, call(l.Pos, passFunction, number(l.Pos, steps)))}, l.Nodes...)
}

// action returns an action that calls a function.
func action(pos parse.Pos, call *parse.CommandNode) *parse.ActionNode {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: pos, Pipe: pipeOf(pos, call)}
}

func number(pos parse.Pos, value int) *parse.NumberNode {
	return &parse.NumberNode{NodeType: parse.NodeNumber, Pos: pos, Text: strconv.Itoa(value), IsInt: true, Int64: int64(value)}
}

func call(pos parse.Pos, function string, args ...parse.Node) *parse.CommandNode {
	identifier := parse.NewIdentifier(function).SetPos(pos)
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: append([]parse.Node{identifier}, args...)}
}

func pipeOf(pos parse.Pos, commands ...*parse.CommandNode) *parse.PipeNode {
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: pos, Cmds: commands}
}

// functions returns the functions that the template calls, each spending its cost, and those that instrument adds.
func (i *instrumentation) functions() template.FuncMap {
	f := template.FuncMap{
		passFunction:  func(steps int) (string, error) { return "", i.budget.spend(steps) },
		weighFunction: func(v any) (any, error) { return v, i.budget.weigh(reflect.ValueOf(v)) },
		printFunction: func(id int, v any) (any, error) {
			i.out.printing, i.out.tracing = i.noted[id].print, i.noted[id].trace
			return v, i.budget.weigh(reflect.ValueOf(v))
		},
		beginFunction: func(id int) string { i.out.begin(i.noted[id].trace); return "" },
		endFunction:   func(id int) string { i.out.end(i.noted[id].trace); return "" },
	}
	for name := range i.called {
		if function, ok := functions[name]; ok {
			f[name] = i.withCost(name, reflect.ValueOf(function))
		}
	}
	return f
}

var errorType = reflect.TypeFor[error]()

// withCost returns a function with the same parameters that spends its cost first, and the cost of its result afterwards.
func (i *instrumentation) withCost(name string, function reflect.Value) any {
	kind := function.Type()
	in := make([]reflect.Type, kind.NumIn())
	for at := range in {
		in[at] = kind.In(at)
	}
	result := kind.Out(0)
	failed := func(err error) []reflect.Value {
		return []reflect.Value{reflect.Zero(result), reflect.ValueOf(&err).Elem()}
	}
	invoke := function.Call
	if kind.IsVariadic() {
		invoke = function.CallSlice
	}
	paid := func(args []reflect.Value) []reflect.Value {
		if err := i.budget.charge(name, args); err != nil {
			return failed(err)
		}
		results := invoke(args)
		if len(results) == 2 && !results[1].IsNil() {
			return results
		}
		if err := i.budget.spendResult(results[0]); err != nil {
			return failed(err)
		}
		return append(results[:1], reflect.Zero(errorType))
	}
	return reflect.MakeFunc(reflect.FuncOf(in, []reflect.Type{result, errorType}, kind.IsVariadic()), paid).Interface()
}
