"""The extension that pi loads: it starts the registered command for each event and acts on its answer (hook/pi.py)."""

from __future__ import annotations

from projectmem.setup import node_bridge

_EXTENSION = """
export default function (pi) {
  let began = ""  // what the session is told before its first turn
  let session = "pi-" + process.pid + "-" + Date.now()
  const base = () => ({ session_id: session, cwd: process.cwd() })
  const text = (content) => (content ?? []).filter((c) => c.type === "text").map((c) => c.text).join("\\n")
  const tell = (ctx, message) => {
    try { if (message) ctx?.ui?.notify?.(message, "warning") } catch {}
  }
  pi.on("session_start", async (event, ctx) => {
    session = ctx?.sessionManager?.getSessionId?.() ?? session
    const answer = await ask("session_start", { ...base(), source: event.reason ?? "" })
    tell(ctx, answer.message ?? answer.systemMessage)
    began = answer.context ?? ""
  })
  pi.on("before_agent_start", async (event, ctx) => {
    const answer = await ask("before_agent_start", { ...base(), prompt: event.prompt ?? "" })
    tell(ctx, answer.message)
    const content = [began, answer.context ?? ""].filter(Boolean).join("\\n\\n")
    began = ""
    if (content) return { message: { customType: "projectmem", content, display: false } }
  })
  pi.on("session_shutdown", async (event) => { await ask("session_shutdown", { ...base(), reason: event.reason ?? "" }) })
  pi.on("tool_call", async (event, ctx) => {
    const call = { ...base(), call_id: event.toolCallId, tool: event.toolName, args: event.input }
    const answer = await ask("tool_call", call)
    tell(ctx, answer.message)
    if (answer.deny) return { block: true, reason: answer.deny }
  })
  pi.on("tool_result", async (event, ctx) => {
    const call = { ...base(), call_id: event.toolCallId, tool: event.toolName, args: event.input }
    const answer = await ask("tool_result", { ...call, output: cut(text(event.content)), is_error: event.isError === true })
    tell(ctx, answer.message)
    if (answer.context) return { content: [...event.content, { type: "text", text: answer.context }] }
  })
}
"""


def text() -> str:
    """The extension's source, for this installation."""
    return node_bridge.text("pi") + _EXTENSION
