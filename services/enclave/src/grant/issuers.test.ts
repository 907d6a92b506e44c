import { hashEnclaveConfig } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { parseIssuers } from './issuers.ts'

describe('OIDC_ISSUERS', () => {
  test('the keys come from the issuer, except for Google or if the entry names another source', () => {
    expect(
      parseIssuers(
        'https://id.example/realms/a=client-1, https://accounts.google.com=1.apps.googleusercontent.com,https://login.example:8443=x=https://keys.example',
      ),
    ).toEqual({
      faults: [],
      issuers: [
        {
          issuer: 'https://accounts.google.com',
          audience: '1.apps.googleusercontent.com',
          jwksOrigin: 'https://www.googleapis.com',
        },
        { issuer: 'https://id.example/realms/a', audience: 'client-1', jwksOrigin: 'https://id.example' },
        { issuer: 'https://login.example:8443', audience: 'x', jwksOrigin: 'https://keys.example' },
      ],
    })
  })

  test('an issuer is compared exactly: with a slash it is another issuer', () => {
    const { issuers, faults } = parseIssuers(
      'https://id.example/=a,https://id.example=a,https://accounts.google.com/=a,https://ID.example=a',
    )
    expect(faults).toEqual([])
    expect(issuers.map(({ issuer, jwksOrigin }) => [issuer, jwksOrigin])).toEqual([
      ['https://ID.example', 'https://id.example'],
      ['https://accounts.google.com/', 'https://accounts.google.com'],
      ['https://id.example', 'https://id.example'],
      ['https://id.example/', 'https://id.example'],
    ])
  })

  test.each(['http://127.0.0.1:9000', 'http://[::1]:9000', 'http://localhost:9000'])(
    'accepts http on loopback: %s',
    (issuer) => {
      expect(parseIssuers(`${issuer}=a`)).toEqual({
        issuers: [{ issuer, audience: 'a', jwksOrigin: issuer }],
        faults: [],
      })
    },
  )

  test('one issuer may have two audiences, and the list is in the order of the configuration hash', () => {
    const { issuers, faults } = parseIssuers('https://b.example=2,https://b.example=1,https://a.example=3')
    expect(faults).toEqual([])
    expect(issuers.map(({ audience }) => audience)).toEqual(['3', '1', '2'])
    const rest = { caSet: 'x', rootSecret: 'x', quoteSource: 'x', callerPolicy: 'x', version: 'x' }
    expect(() => hashEnclaveConfig({ issuers, ...rest })).not.toThrow()
  })

  test.each([
    ['', 'expected at least one issuer'],
    ['  ', 'expected at least one issuer'],
    ['https://a.example', 'entry 1: expected issuer=audience or issuer=audience=jwksOrigin'],
    ['https://a.example=a=https://b.example=c', 'entry 1: expected issuer=audience or issuer=audience=jwksOrigin'],
    ['https://a.example=a,', 'entry 2: expected issuer=audience or issuer=audience=jwksOrigin'],
    ['=a', 'entry 1: the issuer is not a URL'],
    ['https://a.example/\\b=a', 'entry 1: the issuer is not a URL'],
    ['https://a.exa\tmple=a', 'entry 1: the issuer is not a URL'],
    ['a.example=a', 'entry 1: the issuer is not an http(s) URL'],
    ['https:a.example=a', 'entry 1: the issuer is not an http(s) URL'],
    ['ftp://a.example=a', 'entry 1: the issuer is not an http(s) URL'],
    ['https://=a', 'entry 1: the issuer is not an http(s) URL'],
    ['https://a.example?x=a', 'entry 1: the issuer has a query or a fragment'],
    ['https://a.example?=a', 'entry 1: the issuer has a query or a fragment'],
    ['https://a.example#x=a', 'entry 1: the issuer has a query or a fragment'],
    ['https://user:secret@a.example=a', 'entry 1: the issuer has credentials'],
    ['https://@a.example=a', 'entry 1: the issuer has credentials'],
    ['http://a.example=a', 'entry 1: the issuer is plain http on a host other than loopback'],
    ['http://127.0.0.1.example=a', 'entry 1: the issuer is plain http on a host other than loopback'],
    ['http://localhost.example=a', 'entry 1: the issuer is plain http on a host other than loopback'],
    ['https://a.example=', 'entry 1: the audience is empty or contains spaces'],
    ['https://a.example=a b', 'entry 1: the audience is empty or contains spaces'],
    ['https://a.example=a=', 'entry 1: the JWKS origin is not an http(s) URL'],
    ['https://a.example=a=http://b.example', 'entry 1: the JWKS origin is plain http on a host other than loopback'],
    ['https://a.example=a=http://localhost:1', 'entry 1: the JWKS origin is plain http for an https issuer'],
    [
      'https://a.example=a=https://b.example/keys',
      'entry 1: the JWKS origin is not exactly a scheme, a host and a port',
    ],
    ['https://a.example=a=https://B.example', 'entry 1: the JWKS origin is not exactly a scheme, a host and a port'],
    ['https://a.example=a,https://a.example=a', 'entry 2: duplicate issuer and audience'],
    ['https://a.example=a,https://a.example=a=https://b.example', 'entry 2: duplicate issuer and audience'],
    [
      'https://a.example=a,https://a.example=b=https://b.example',
      'entry 2: expected the JWKS origin of the earlier entry with this issuer',
    ],
  ])('fault in %j: %s', (text, fault) => {
    expect(parseIssuers(text).faults).toEqual([fault])
  })

  test('lists every fault, and none quotes the setting', () => {
    const { faults } = parseIssuers('http://user:secret@a.example=,https://b.example,https://c.example=c=nowhere')
    expect(faults).toHaveLength(4)
    expect(faults.join()).not.toMatch(/secret|example|nowhere/)
  })
})
