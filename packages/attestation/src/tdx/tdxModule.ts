/** The TDX module beneath a TD: Intel's name for its line, which TDX 1.0 did not have, and its security version. */
export type TdxModuleVersion = { id: string | undefined; svn: number }

/** From TDX 1.5 on, `TEE_TCB_SVN[1]` is the module's version; TDX 1.0 has 0 there. `TEE_TCB_SVN[0]` is its SVN. */
export function readTdxModule(teeTcbSvn: Uint8Array): TdxModuleVersion {
  const [svn = 0, version = 0] = teeTcbSvn
  return { id: version === 0 ? undefined : `TDX_${version.toString(16).padStart(2, '0').toUpperCase()}`, svn }
}
