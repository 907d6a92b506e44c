import type { OidcAccount } from './localAccounts.ts'

/** As many as a phone shows without scrolling. Tests have thousands. */
const MAX_SUGGESTED = 6

/** Renders the sign-in page of the local provider, which accepts any name. All links and the form lead back to it. */
export function renderSignInPage({
  remembered,
  suggested,
  isRefused,
}: {
  /** Names used in this browser. */
  remembered: readonly string[]
  suggested: readonly OidcAccount[]
  /** The entered name was invalid. */
  isRefused: boolean
}): string {
  const names = [...new Set([...remembered, ...suggested.map(({ name }) => name)])].slice(0, MAX_SUGGESTED)
  const people = names.map((name) => renderPerson(name, suggested.find((account) => account.name === name)?.sub))
  const fault = '<p id="fault" role="alert">Enter a name. Any name works.</p>'
  return renderPage(
    'Who are you?',
    `<p>This provider is part of the local stack. There are no passwords: type any name, and you are that person.</p>
<form method="get">
<label for="name">Name</label>
${isRefused ? fault : ''}
<div class="row">
<input id="name" name="name" required maxlength="60" autocomplete="nickname" autocapitalize="words" spellcheck="false" autofocus${isRefused ? ' aria-invalid="true" aria-describedby="fault"' : ''}>
<button>Continue</button>
</div>
</form>
${people.length === 0 ? '' : `<h2>${remembered.length === 0 ? 'Or choose an account' : 'Or choose a previous account or a suggested one'}</h2>\n<ul>${people.join('')}</ul>`}
<p class="last"><a href="?cancel=1">Cancel and go back</a></p>`,
  )
}

export function renderOverPage(): string {
  return renderPage('This sign-in has ended', '<p>Go back to the app and sign in again.</p>')
}

function renderPerson(name: string, sub: string | undefined): string {
  const query = sub === undefined ? `name=${encodeURIComponent(name)}` : `as=${encodeURIComponent(sub)}`
  const initial = [...name][0]?.toUpperCase() ?? ''
  return `<li><a href="?${query}"><span class="face" aria-hidden="true">${escapeHtml(initial)}</span><span>Sign in as ${escapeHtml(name)}</span></a></li>`
}

const STYLE = `
:root{color-scheme:light dark;--back:#f4f5f7;--card:#fff;--ink:#1b1e26;--soft:#565d6b;--line:#878e9c;--tone:#2f5fd0;--on-tone:#fff;--bad:#a8324a}
@media (prefers-color-scheme:dark){:root{--back:#121419;--card:#1c1f27;--ink:#e9ebf1;--soft:#a9b0be;--line:#747c8c;--tone:#8fb0ff;--on-tone:#0d1017;--bad:#ff9db0}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1rem;background:var(--back);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
main{width:100%;max-width:26rem;padding:1.5rem;border-radius:1rem;background:var(--card);overflow-wrap:anywhere}
h1{margin:0 0 .5rem;font-size:1.6rem;line-height:1.2}
h2{margin:1.5rem 0 .5rem;font-size:1rem}
p{margin:.5rem 0;color:var(--soft)}
#fault{color:var(--bad)}
label{display:block;margin-top:1.25rem;font-weight:600}
.row{display:flex;flex-wrap:wrap;gap:.5rem;margin-top:.25rem}
input{flex:1 1 10rem;min-width:0}
input,button{font:inherit;min-height:2.75rem;padding:.5rem .75rem;border-radius:.6rem;border:1px solid var(--line);background:var(--card);color:var(--ink)}
button{flex:1 0 auto;border-color:var(--tone);background:var(--tone);color:var(--on-tone);font-weight:600;cursor:pointer}
ul{margin:0;padding:0;list-style:none;display:grid;gap:.5rem}
li a{display:flex;align-items:center;gap:.75rem;min-height:3rem;padding:.4rem .75rem;border:1px solid var(--line);border-radius:.6rem;color:inherit;text-decoration:none}
li a:hover{border-color:var(--tone)}
li span:last-child{min-width:0}
.face{flex:none;display:grid;place-items:center;width:2rem;height:2rem;border-radius:50%;background:var(--tone);color:var(--on-tone);font-weight:700}
.last{margin-top:1.5rem;text-align:center}
.last a{color:var(--tone)}
:focus-visible{outline:3px solid var(--tone);outline-offset:2px}
`

function renderPage(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title} · Local sign-in</title><style>${STYLE}</style></head>
<body><main><h1>${title}</h1>
${body}
</main></body>
</html>`
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
