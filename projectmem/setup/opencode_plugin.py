"""The plugin that opencode loads: it starts the registered command for each event and acts on its answer.

opencode has no hook commands. The plugin fails open: a command that cannot be started, takes too long or answers with
something else changes nothing. What it sends and what comes back is described in hook/opencode.py.
"""

from __future__ import annotations

from projectmem.setup import node_bridge

_PLUGIN = """export const ProjectmemGate = async ({ client, directory }) => {
  const args = new Map()  // of calls that have not ended
  const begun = new Set()
  const base = (session) => ({ session_id: session, cwd: directory })
  const tell = (message) => {
    if (message) Promise.resolve(client?.tui?.showToast?.({ body: { message, variant: "warning" } })).catch(() => {})
  }
  const add = (output, text) => {
    const like = output.parts?.find((part) => part.type === "text")
    if (like && text) output.parts.push({ ...like, id: like.id + "pm" + output.parts.length, text, synthetic: true })
  }
  return {
    "chat.message": async (input, output) => {
      const typed = (output.parts ?? []).filter((part) => part.type === "text" && !part.synthetic)
      if (!begun.has(input.sessionID)) {
        begun.add(input.sessionID)
        const start = await ask("session.start", { ...base(input.sessionID), source: "startup" })
        tell(start.message ?? start.systemMessage)
        add(output, start.context)
      }
      const answer = await ask("chat.message", { ...base(input.sessionID), prompt: typed.map((part) => part.text).join("\\n") })
      tell(answer.message)
      add(output, answer.context)
    },
    "tool.execute.before": async (input, output) => {
      args.set(input.callID, output.args)
      const call = { ...base(input.sessionID), call_id: input.callID, tool: input.tool, args: output.args }
      const answer = await ask("tool.execute.before", call)
      tell(answer.message)
      if (answer.deny) throw new Error(answer.deny)
    },
    "tool.execute.after": async (input, output) => {
      const given = args.get(input.callID) ?? input.args
      args.delete(input.callID)
      const call = { ...base(input.sessionID), call_id: input.callID, tool: input.tool, args: given }
      const result = { output: cut(output.output), exit: output.metadata?.exit }
      const answer = await ask("tool.execute.after", { ...call, ...result })
      tell(answer.message)
      if (answer.context && typeof output.output === "string") output.output += "\\n\\n" + answer.context
    },
    event: async ({ event }) => {
      const part = event?.type === "message.part.updated" ? event.properties?.part : undefined
      if (part?.type !== "tool" || part.state?.status !== "error" || !args.has(part.callID)) return
      const given = args.get(part.callID)
      args.delete(part.callID)
      const call = { ...base(part.sessionID), call_id: part.callID, tool: part.tool, args: given }
      tell((await ask("tool.error", { ...call, error: cut(String(part.state.error ?? "")) })).message)
    },
  }
}
"""


def text() -> str:
    """The plugin's source, for this installation."""
    return node_bridge.text("opencode") + _PLUGIN
