import { errorCodes } from '@countersign/protocol/errorCodes'
import { escapeHtml, renderPage } from './docsPage.ts'
import type { Problem } from './problem.ts'

/** Paths that browsers navigate to: the start of a sign-in and its callback. */
export function isSignInPath(path: string): boolean {
  return /^\/auth\/(?!(?:me|logout)$)[^/]+(?:\/callback)?$/.test(path)
}

/** The page for a failed sign-in: what happened, what to do, and a link back. */
export function renderSignInPage(problem: Problem, { startUrl }: { startUrl: string | undefined }): string {
  const { title, code, detail, requestId } = problem
  const parts = [
    `<h1>${escapeHtml(title)}</h1>`,
    '<p>You are not signed in.</p>',
    `<p>${escapeHtml(errorCodes[code].advice)}</p>`,
    ...(detail === undefined ? [] : [`<p>Details: ${escapeHtml(detail)}.</p>`]),
    ...(startUrl === undefined ? [] : [`<p><a href="${escapeHtml(startUrl)}">Start again</a></p>`]),
    `<p><small>Code <code>${code}</code>, request <code>${escapeHtml(requestId)}</code></small></p>`,
  ]
  return renderPage(title, parts.join('\n'))
}
