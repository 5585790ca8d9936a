// Judges one Kubernetes object, JSON on standard input, by a file of Lua, as Argo CD does: the interpreter is its own.
// Prints the health's status and message, a line each.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	lua "github.com/yuin/gopher-lua"
)

func main() {
	var object map[string]any
	check(json.NewDecoder(os.Stdin).Decode(&object))
	script, err := os.ReadFile(os.Args[1])
	check(err)
	state := lua.NewState()
	defer state.Close()
	state.SetGlobal("obj", value(state, object))
	check(state.DoString(string(script)))
	health := state.Get(-1).(*lua.LTable)
	fmt.Printf("%s\n%s\n", health.RawGetString("status"), health.RawGetString("message"))
}

func value(state *lua.LState, item any) lua.LValue {
	switch item := item.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, part := range item {
			table.RawSetString(key, value(state, part))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, part := range item {
			table.Append(value(state, part))
		}
		return table
	case string:
		return lua.LString(item)
	case float64:
		return lua.LNumber(item)
	case bool:
		return lua.LBool(item)
	}
	return lua.LNil
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
