// Lua as Argo CD runs it for its health snippets, docs/plans.md: the interpreter is Argo CD's own.
module consumerplanner.dev/health

go 1.24

require (
	github.com/yuin/gopher-lua v1.1.2
)
