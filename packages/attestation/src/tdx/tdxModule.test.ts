import { expect, test } from 'vitest'
import { readTdxModule } from './tdxModule.ts'

test.each([
  [[5, 0, 6], { id: undefined, svn: 5 }],
  [[11, 1, 4], { id: 'TDX_01', svn: 11 }],
  [[0, 0xab, 0], { id: 'TDX_AB', svn: 0 }],
])('TEE_TCB_SVN %j', (svns, module) => {
  expect(readTdxModule(Uint8Array.from(svns))).toEqual(module)
})
