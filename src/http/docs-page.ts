import { createHash } from 'node:crypto'

interface Parameter {
  name: string
  in: string
  required?: boolean
  description?: string
}

interface Media {
  example?: unknown
  schema?: { examples?: unknown[] }
}

interface Operation {
  operationId: string
  summary: string
  description?: string
  tags?: string[]
  parameters?: Parameter[]
  requestBody?: { content: Record<string, Media> }
  responses: Record<string, { description?: string; content?: Record<string, Media> }>
  'x-access': readonly string[] | 'anybody'
}

export interface OpenApiDocument {
  openapi: string
  paths: Record<string, Record<string, Operation>>
}

const style = `
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: CanvasText; background: Canvas; }
:root { color-scheme: light dark; }
h2 { margin-top: 2.5rem; } h3 { margin-bottom: .25rem; font-size: 1rem; }
code, pre { font: 14px/1.45 ui-monospace, monospace; }
pre { padding: .75rem; overflow-x: auto; border: 1px solid; border-radius: .25rem; }
dt { float: left; clear: left; margin-right: .75rem; } dd { margin: 0 0 .1rem 14rem; }
.access { opacity: .75; }
`

/** Lets the page use its own style and nothing else. */
export const docsPolicy = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`

/** One static page of the OpenAPI document: what there is, who may use it, and an example of each. */
export function docsPage(document: OpenApiDocument): string {
  const groups = new Map<string, string[]>()
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const tag = operation.tags?.[0] ?? 'other'
      groups.set(tag, [...(groups.get(tag) ?? []), section(method.toUpperCase(), path, operation)])
    }
  }
  const body = [...groups].map(([tag, sections]) => `<h2>${escapeHtml(tag)}</h2>\n${sections.join('\n')}`).join('\n')
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Sluice HTTP API</title><style>${style}</style></head><body>
<h1>Sluice HTTP API</h1>
<p>The same for programs: <a href="/openapi.json">/openapi.json</a> (OpenAPI ${escapeHtml(document.openapi)}). What goes wrong is
answered as <code>application/problem+json</code> with the field and what is allowed.</p>
${body}
</body></html>
`
}

function section(method: string, path: string, operation: Operation): string {
  const access = operation['x-access']
  const who = access === 'anybody' ? 'anybody, without a key' : access.join(', ')
  return `<section id="${escapeHtml(operation.operationId)}"><h3><code>${method} ${escapeHtml(path)}</code></h3>
<p>${escapeHtml(operation.summary)} <span class="access">(${escapeHtml(who)})</span></p>
${operation.description ? `<p>${escapeHtml(operation.description)}</p>` : ''}
${parameterList(operation.parameters ?? [])}
${exampleOf('Request', operation.requestBody?.content ?? {})}
${Object.entries(operation.responses)
  .filter(([status]) => status.startsWith('2'))
  .map(([status, { content }]) => exampleOf(status, content ?? {}))
  .join('\n')}
</section>`
}

function parameterList(parameters: readonly Parameter[]): string {
  if (parameters.length === 0) return ''
  const rows = parameters.map(
    ({ name, in: place, required, description }) =>
      `<dt><code>${escapeHtml(name)}</code> (${escapeHtml(place)}${required ? '' : ', optional'})</dt><dd>${escapeHtml(description ?? '')}&nbsp;</dd>`,
  )
  return `<dl>${rows.join('')}</dl>`
}

function exampleOf(title: string, content: Readonly<Record<string, Media>>): string {
  return Object.entries(content)
    .map(([type, media]) => {
      const example = media.example ?? media.schema?.examples?.[0]
      if (example === undefined) return ''
      const text = typeof example === 'string' ? example : JSON.stringify(example, null, 2)
      return `<p>${escapeHtml(title)}, <code>${escapeHtml(type)}</code></p><pre>${escapeHtml(text)}</pre>`
    })
    .join('\n')
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '')
}
