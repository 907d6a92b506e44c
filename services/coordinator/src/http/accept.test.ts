import { expect, test } from 'vitest'
import { prefersHtml } from './accept.ts'

test.each([
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8',
  'text/html',
  'TEXT/HTML',
  'text/*',
  'text/html;q=0.9, application/json;q=0.8',
  'application/json;q=0.5, text/html; charset=utf-8; q=0.6',
  'text/html;q=0.001',
])('%s prefers a page', (accept) => {
  expect(prefersHtml(accept)).toBe(true)
})

test.each([
  undefined,
  '',
  '*/*',
  'application/json',
  'application/problem+json, text/html',
  'application/json, text/html',
  'text/html;q=0.8, application/json',
  'text/html;q=0.8, application/problem+json;q=0.9',
  'text/html;q=0.8, */*',
  'text/html, application/json;q=0, */*',
  'text/html;q=0',
  'text/html;q=0, text/*',
  'text/html;q=2',
  'text/html;q=high',
  'text/html;q=',
  'text/htmlx',
  'text/plain',
  'html',
  ',;,=',
])('%s does not', (accept) => {
  expect(prefersHtml(accept)).toBe(false)
})
