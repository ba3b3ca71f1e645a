using static System.Math;
using System;

namespace Greenhouse.Beds
{
    /// <summary>A carrot, 🥕 for short.</summary>
    public sealed class Möhre : Plant
    {
        public Möhre(double length)
            : base("🥕", 0.3)
        {
            Length = Max(0, length);
        }

        public double Length { get; }

        public string Show()
        {
            var text = "🥕"; if (Length > 20) text += "!"; return text + Environment.NewLine;
        }
    }
}
